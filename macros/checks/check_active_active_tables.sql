{# Post-hook of table_filter: in active-active mode every replicated table must be one, with its hidden columns, before a row of it goes anywhere. #}
{% macro check_active_active_tables() %}
  {%- if execute and tidemark.is_active_active_mode() -%}
    {%- set needed = tidemark.changefeed_setting('active_active_columns') -%}
    {%- set bad = run_query(
      'select distinct schema_name, table_name, is_active_active, array_join(array_except(array(' ~ tidemark.text_literals(needed)
      ~ "), transform(filter(columns, column -> column.name <> '_tidb_softdelete_time' or column.column_type = 'timestamp(6)' and column.is_nullable)"
      ~ ", column -> column.name)), ', ') as missing from " ~ ref('table_versions')
      ~ ' inner join ' ~ this ~ ' using (schema_name, table_name)'
      ~ ' where is_replicated and valid_to_ts is null and not is_view order by 1, 2'
    ) -%}
    {%- set problems = [] -%}
    {%- for row in bad -%}
      {%- if not row[2] -%}
        {% do problems.append(row[0] ~ '.' ~ row[1] ~ ' is not an active-active table') %}
      {%- elif row[3] -%}
        {% do problems.append(row[0] ~ '.' ~ row[1] ~ ' lacks ' ~ row[3] | replace('_tidb_softdelete_time', '_tidb_softdelete_time TIMESTAMP(6) NULL')) %}
      {%- endif -%}
    {%- endfor -%}
    {%- if problems -%}
      {% do exceptions.raise_compiler_error(
        'enable-active-active needs active-active tables only: ' ~ problems | join('; ')
        ~ '. Leave these tables out with the filter of the changefeed, or add what is missing'
      ) %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
