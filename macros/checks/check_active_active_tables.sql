{#
  Pre-hook of row_policy: in active-active mode every replicated table must be one, with its hidden columns, before a row of it goes anywhere. Looked at are the versions that hold at the
  checkpoint, and those that rows which nobody has taken yet were written with; a table that is dropped by then is left alone, its rows are gone.
#}
{% macro check_active_active_tables(table_filter, table_versions, checkpoints, row_changes) %}
  {%- if execute and tidemark.is_active_active_mode() -%}
    {%- set faulty_versions -%}
    select * from (
        select
            *,
            array_join(
                array_except(
                    array({{ tidemark.text_literals(tidemark.changefeed_setting('active_active_columns')) }}),
                    transform(
                        filter(
                            columns,
                            item -> item.name <> '_tidb_softdelete_time' or item.column_type = 'timestamp(6)' and item.is_nullable
                        ),
                        item -> item.name
                    )
                ),
                ', '
            ) as missing
        from {{ table_versions }}
        inner join {{ table_filter }} using (schema_name, table_name)
        where is_replicated and not is_view
    )
    where not is_active_active or missing <> ''
    {%- endset -%}
    {#- nearly always there are none, and rows need not be looked at -#}
    {%- if run_query('select 1 from (' ~ faulty_versions ~ ') limit 1') | length == 0 -%}
      {{ return('') }}
    {%- endif -%}
    {%- set query -%}
    with checkpoints as (
        select
            upstream_id,
            max(checkpoint_ts) as checkpoint_ts
        from {{ checkpoints }}
        group by upstream_id
    ),

    new_rows as (
        select distinct upstream_id, table_id, table_version, true as has_new_rows
        from {{ row_changes }}
        where error_reason is null
        and batch_id > {{ tidemark.last_taken_batch() }}
    ),

    reached as (
        select
            versions.upstream_id,
            versions.table_id,
            versions.valid_from_ts,
            coalesce(versions.valid_to_ts > checkpoints.checkpoint_ts, true) as is_in_force,
            last_value(coalesce(versions.valid_to_ts > checkpoints.checkpoint_ts, true)) over (
                partition by versions.upstream_id, versions.table_id
                order by versions.valid_from_ts
                rows between unbounded preceding and unbounded following
            ) as is_there
        from {{ table_versions }} as versions
        inner join checkpoints
            on versions.upstream_id = checkpoints.upstream_id and versions.valid_from_ts <= checkpoints.checkpoint_ts
    )

    select distinct
        faulty.schema_name,
        faulty.table_name,
        faulty.is_active_active,
        faulty.missing
    from ({{ faulty_versions }}) as faulty
    inner join reached using (upstream_id, table_id, valid_from_ts)
    left join new_rows using (upstream_id, table_id, table_version)
    where is_there and (is_in_force or has_new_rows)
    {%- endset -%}
    {%- set problems = [] -%}
    {%- for row in run_query(query) -%}
      {%- if not row[2] -%}
        {% do problems.append(row[0] ~ '.' ~ row[1] ~ ' is not an active-active table') %}
      {%- elif row[3] -%}
        {% do problems.append(row[0] ~ '.' ~ row[1] ~ ' lacks ' ~ row[3] | replace('_tidb_softdelete_time', '_tidb_softdelete_time TIMESTAMP(6) NULL')) %}
      {%- endif -%}
    {%- endfor -%}
    {%- if problems -%}
      {% do exceptions.raise_compiler_error(
        'enable-active-active needs active-active tables only: ' ~ problems | unique | sort | join('; ')
        ~ '. Leave these tables out with the filter of the changefeed, or add what is missing'
        ~ ('. TiCDC sends tables that do not list _tidb_commit_ts: take them with compat: {base: design, active_active_columns: ticdc}'
           if '_tidb_commit_ts' in problems | join else '')
      ) %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{# The last batch whose rows int_winners has taken; 0 before its first run. That model comes after the one with the hook, so it is no ref. #}
{% macro last_taken_batch() %}
  {%- set winners = this.incorporate(path={'identifier': 'int_winners'}) -%}
  {%- if load_relation(winners) is none -%}
    {{ return(0) }}
  {%- endif -%}
  {{ return(tidemark.last_batch_of(winners)) }}
{% endmacro %}
