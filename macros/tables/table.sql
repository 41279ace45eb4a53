{#
  The current rows of a source table with real columns of real Spark types, for use behind `from`.

  with_deleted: keep the tombstones of deleted rows, too.
  Example: select * from {{ tidemark.table('shop', 'orders') }}
#}
{% macro table(schema_name, table_name, with_deleted=false) %}
  {%- set current_rows, versions = ref('current_rows'), ref('table_versions') -%}
  {%- if not execute -%}
    {{ return(current_rows) }}
  {%- endif -%}
  {%- set found = run_query(
    'select to_json(max_by(columns, struct(valid_from_ts, table_version))) from ' ~ versions
    ~ ' where schema_name = ' ~ tidemark.text_literal(schema_name) ~ ' and table_name = ' ~ tidemark.text_literal(table_name)
  ) -%}
  {%- if found | length == 0 or found[0][0] is none -%}
    {% do exceptions.raise_compiler_error(
      'no log so far mentions a table ' ~ schema_name ~ '.' ~ table_name ~ '; `select distinct schema_name, table_name from ' ~ versions ~ '` lists those there are'
    ) %}
  {%- endif -%}
  {%- set fields, selected = [], [] -%}
  {%- for column in fromjson(found[0][0]) if not column.is_virtual_generated -%}
    {% do fields.append(adapter.quote(column.name) ~ ' string') %}
    {% do selected.append(tidemark.spark_value(column, 'row.' ~ adapter.quote(column.name)) ~ ' as ' ~ adapter.quote(column.name)) %}
  {%- endfor -%}
  {{ return(
    '(select ' ~ selected | join(', ') ~ ' from (select from_json(values, ' ~ tidemark.text_literal(fields | join(', '))
    ~ ') as row, origin_ts from ' ~ current_rows
    ~ ' where schema_name = ' ~ tidemark.text_literal(schema_name) ~ ' and table_name = ' ~ tidemark.text_literal(table_name)
    ~ ('' if with_deleted else ' and not is_deleted') ~ '))'
  ) }}
{% endmacro %}


{% macro text_literal(text) -%}
  {{ return("'" ~ text | string | replace('\\', '\\\\') | replace("'", "\\'") ~ "'") }}
{%- endmacro %}
