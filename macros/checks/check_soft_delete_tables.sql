{#
  Pre-hook of row_policy: outside of active-active mode, a table with the flag of soft delete or active-active must have the column of soft deletes. Its hard deletes are dropped, and without
  the column there are no others: all deletes would be lost. Looked at are the versions that rows were written with. Active-active mode has check_active_active_tables.
#}
{% macro check_soft_delete_tables(table_filter, table_versions, row_changes) %}
  {%- if execute and not tidemark.is_active_active_mode() -%}
    {%- set faulty_versions -%}
    select schema_name, table_name, upstream_id, table_id, table_version, is_active_active
    from {{ table_versions }}
    inner join {{ table_filter }} using (schema_name, table_name)
    where is_replicated and (is_active_active or is_soft_delete)
        and not exists(columns, item -> item.name = '_tidb_softdelete_time')
    {%- endset -%}
    {#- nearly always there are none, and rows need not be looked at -#}
    {%- if run_query('select 1 from (' ~ faulty_versions ~ ') limit 1') | length == 0 -%}
      {{ return('') }}
    {%- endif -%}
    {%- set problems = [] -%}
    {%- for row in run_query(
      'select distinct faulty.schema_name, faulty.table_name, faulty.is_active_active from (' ~ faulty_versions ~ ') as faulty left semi join '
      ~ row_changes ~ ' as row_changes using (upstream_id, table_id, table_version)'
    ) -%}
      {% do problems.append(row[0] ~ '.' ~ row[1] ~ ' is ' ~ ('an active-active' if row[2] else 'a soft-delete') ~ ' table and has no column _tidb_softdelete_time') %}
    {%- endfor -%}
    {%- if problems -%}
      {% do exceptions.raise_compiler_error(
        problems | sort | join('; ')
        ~ '. All deletes would be lost: add the column upstream, or leave these tables out with the filter of the changefeed'
      ) %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
