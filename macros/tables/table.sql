{#
  The current rows of a source table with real columns of real Spark types, for use behind `from`. The columns are those of its latest version (with `as_of_ts`, the latest
  by then); a row that was written with an earlier one has its values in them as the statements since would have left them.

  with_deleted: keep the tombstones of deleted rows, too.
  Example: select * from {{ tidemark.table('shop', 'orders') }}
#}
{% macro table(schema_name, table_name, with_deleted=false) %}
  {%- set current_rows = ref('current_rows') -%}
  {% do tidemark.check_shown_ts(current_rows) %}
  {%- set versions = tidemark.table_history(schema_name, table_name) -%}
  {%- if not execute -%}
    {{ return(current_rows) }}
  {%- endif -%}
  {%- set columns = versions[-1].columns | rejectattr('is_virtual_generated') | list -%}
  {%- set readings = tidemark.column_readings(tidemark.column_sources(versions, columns), columns) -%}
  {%- set fields, selected, is_layout = [], [], [] -%}
  {%- for layout in readings.others -%}
    {% do is_layout.append('when ' ~ layout.versions | join(' or ') ~ ' then ' ~ loop.index) %}
  {%- endfor -%}
  {%- for column in columns -%}
    {%- set name, place, cases = adapter.quote(column.name), loop.index0, [] -%}
    {% do fields.append(name ~ ' string') %}
    {%- for layout in readings.others -%}
      {%- if layout.expressions[place] != readings.latest[place] -%}{% do cases.append(' when ' ~ loop.index ~ ' then ' ~ layout.expressions[place]) %}{%- endif -%}
    {%- endfor -%}
    {%- set value = readings.latest[place] if is_layout else tidemark.spark_value(column, 'row.' ~ name) -%}
    {% do selected.append(('case layout' ~ cases | join ~ ' else ' ~ value ~ ' end' if cases else value) ~ ' as ' ~ name) %}
  {%- endfor -%}
  {{ return(
    '(select ' ~ selected | join(', ') ~ ' from (select origin_ts, from_json(values, '
    ~ ("'map<string, string>'" if is_layout else tidemark.text_literal(fields | join(', '))) ~ ') as row'
    ~ (', case ' ~ is_layout | join(' ') ~ ' else 0 end as layout' if is_layout else '')
    ~ ' from ' ~ current_rows
    ~ ' where schema_name = ' ~ tidemark.text_literal(schema_name) ~ ' and table_name = ' ~ tidemark.text_literal(table_name)
    ~ ('' if with_deleted else ' and not is_deleted') ~ '))'
  ) }}
{% endmacro %}


{# current_rows is one view, which shows what the last run of it was asked for: another ts would get the rows of that one. #}
{% macro check_shown_ts(current_rows) %}
  {%- set wanted = var('as_of_ts') | string -%}
  {%- set shown = adapter.table_property(current_rows, 'tidemark.as_of_ts') if target.type == 'tidemark' and tidemark.is_built([current_rows]) else none -%}
  {%- if shown is not none and shown != wanted -%}
    {%- set names = {'None': 'now'} -%}
    {% do exceptions.raise_compiler_error(
      'current_rows shows rows as of ' ~ names.get(shown, shown) ~ ', and this command asks for ' ~ names.get(wanted, wanted) ~ ': first run `dbt run --select current_rows'
      ~ ('' if wanted == 'None' else " --vars 'as_of_ts: " ~ wanted ~ "'") ~ '`'
    ) %}
  {%- endif -%}
{% endmacro %}


{% macro text_literal(text) -%}
  {{ return("'" ~ text | string | replace('\\', '\\\\') | replace("'", "\\'") ~ "'") }}
{%- endmacro %}
