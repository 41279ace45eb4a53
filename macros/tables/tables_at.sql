{#
  Every table of every upstream, and every partition that a statement moved or dropped, with the table that its rows are part of, as a query: what a table is (docs/models.md).

  as_of_ts: of a snapshot; none: now.
#}
{% macro tables_at(as_of_ts) %}
    {%- set statements = tidemark.shown_statements(as_of_ts) -%}
    with table_versions as (
        select * from {{ ref('table_versions') }}
    ),

    ddl_events as (
        select * from {{ ref('stg_ddl_events') }} where error_reason is null
    ),

    shown as (
        select explode(from_json({{ tidemark.text_literal(tojson(statements.last_ts)) }}, 'map<string, bigint>')) as (upstream_id, shown_ts)
    ),

    -- few rows: in one partition the steps below need no exchange
    known_versions as (
        select /*+ repartition(1) */
            table_versions.upstream_id,
            table_versions.table_id,
            struct(table_versions.schema_name, table_versions.table_name) as name,
            table_versions.ddl_type,
            table_versions.valid_from_ts,
            if(table_versions.valid_to_ts <= shown.shown_ts, table_versions.valid_to_ts, null) as valid_to_ts
        from table_versions
        inner join shown
            on table_versions.upstream_id = shown.upstream_id and table_versions.valid_from_ts <= shown.shown_ts
    ),

    own_names as (
        select
            upstream_id,
            table_id,
            max_by(name, valid_from_ts) as name,
            max_by(valid_to_ts, valid_from_ts) as gone_ts
        from known_versions
        group by upstream_id, table_id
    ),

    {% if statements.has_renames -%}
        {{ tidemark.names_given_last('known_versions') }}
    {%- endif %}

    named_tables as (
        {% if statements.has_renames %}
            select
                own_names.*,
                names.name as shown_name
            from own_names
            inner join names
                on own_names.upstream_id = names.upstream_id and own_names.table_id = names.table_id
        {% else %}
            select
                *,
                name as shown_name
            from own_names
        {% endif %}
    ),

    -- exchange partition: a plain table, whose table info stands last, becomes a partition, and a partition becomes a plain table;
    -- partition by, remove partitioning: the table gets another id; drop and truncate partition take rows away, and others move them
    partition_changes as (
        select
            ddl_events.*,
            explode(
                if(
                    ddl_events.ddl_type = 42,
                    from_json(get_json_object(ddl_events.body, '$.blocked_tables.TableIDs'), 'array<bigint>'),
                    ddl_events.dropped_table_ids
                )
            ) as physical_table_id
        from ddl_events
        inner join shown
            on ddl_events.upstream_id = shown.upstream_id and ddl_events.finished_ts <= shown.shown_ts
        where ddl_events.ddl_type in (20, 23, 42, 71, 72)
    ),

    moved_partitions as (
        select
            upstream_id,
            physical_table_id,
            max_by(
                case
                    when ddl_type <> 42 then tables[0].table_id
                    when physical_table_id = element_at(tables, -1).table_id
                        then filter(tables, item -> item.is_partition)[0].table_id
                    else physical_table_id
                end,
                finished_ts
            ) as owner_id,
            max(finished_ts) filter (where ddl_type in (20, 23)) as dropped_ts
        from partition_changes
        where physical_table_id > 0
        group by upstream_id, physical_table_id
    ),

    -- one row per id that rows may have
    owned_ids as (
        select
            upstream_id,
            physical_table_id as table_id,
            owner_id,
            dropped_ts
        from moved_partitions
        union all
        select
            table_versions.upstream_id,
            table_versions.table_id,
            table_versions.table_id as owner_id,
            cast(null as bigint) as dropped_ts
        from table_versions
        left anti join moved_partitions
            on
                table_versions.upstream_id = moved_partitions.upstream_id
                and table_versions.table_id = moved_partitions.physical_table_id
        group by table_versions.upstream_id, table_versions.table_id
    ),

    owned_tables as (
        select /*+ broadcast(owned_ids) */
            owned_ids.upstream_id,
            owned_ids.table_id,
            named_tables.shown_name.schema_name,
            named_tables.shown_name.table_name,
            named_tables.name.schema_name as own_schema_name,
            named_tables.name.table_name as own_table_name,
            greatest(named_tables.gone_ts, owned_ids.dropped_ts) as gone_ts
        from named_tables
        inner join owned_ids
            on named_tables.upstream_id = owned_ids.upstream_id and named_tables.table_id = owned_ids.owner_id
    )

    select * from owned_tables
{%- endmacro %}


{# What tables are now, or were at the ts of a snapshot, as a query. #}
{% macro shown_tables(as_of_ts) %}
    {%- set identities = ref('table_identities') -%}
    {%- if as_of_ts is none -%}
        select * from {{ identities }}
    {%- else -%}
        {{ tidemark.tables_at(as_of_ts) }}
    {%- endif -%}
{%- endmacro %}


{#
  The statements that count, as far as tables_at asks: `last_ts`, that of the last one of each upstream, and `has_renames`, whether a table has had two names. While these and the
  statements in the logs stay the same, so do the tables, whatever rows the logs bring.
#}
{% macro shown_statements(as_of_ts) %}
  {%- set versions, statements, checkpoints = ref('table_versions'), ref('stg_ddl_events'), tidemark.shown_checkpoints(as_of_ts) -%}
  {%- if not tidemark.is_built([versions, statements, ref('int_checkpoints')]) -%}
    {{ return({'last_ts': {}, 'has_renames': true}) }}
  {%- endif -%}
  {%- set last_ts, names = {}, [1] -%}
  {%- for row in run_query(
    'select upstream_id, max(ts), max(names) from ('
    ~ ' select e.upstream_id, max(e.ts) as ts, count(distinct e.name) as names from ('
    ~ '  select upstream_id, table_id, valid_from_ts as ts, struct(schema_name, table_name) as name from ' ~ versions
    ~ '  union all select upstream_id, null, finished_ts, null from ' ~ statements
    ~ ' ) as e inner join (' ~ checkpoints ~ ') as s on e.upstream_id = s.upstream_id and e.ts <= s.shown_ts'
    ~ ' group by e.upstream_id, e.table_id) group by upstream_id order by upstream_id'
  ) -%}
    {% do last_ts.update({row[0]: row[1] | int}) %}
    {% do names.append(row[2] | int) %}
  {%- endfor -%}
  {{ return({'last_ts': last_ts, 'has_renames': names | max > 1}) }}
{% endmacro %}
