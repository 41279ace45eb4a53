{#
  Say how many deletes of a range say nothing. An Avro delete is its key, and a table without a key has none: consumers keep the row.
  Their number becomes part of the range, for sink_checkpoints, where a test finds it: dbt counts the warnings of tests only.

  range: what the sink sends. schemas: its option of that name.
#}
{% macro warn_of_empty_deletes(range, schemas) %}
  {%- if tidemark.changefeed_setting('protocol') != 'avro' -%}
    {{ return('') }}
  {%- endif -%}
  {% do range.update({'empty_delete_count': 0}) %}
  {%- set deletes = "(select *, '' as topic from " ~ ref('row_policy') ~ " where policy_op = 'delete' and " ~ range.condition ~ ')' -%}
  {%- set versions = [] -%}
  {%- for version in adapter.versions_without_avro_key(tidemark.first_rows(deletes, range), schemas) -%}
    {% do versions.append('(' ~ tidemark.text_literal(version[0]) ~ ', ' ~ tidemark.text_literal(version[1]) ~ ', ' ~ version[2] ~ 'L)') %}
  {%- endfor -%}
  {%- if not versions -%}
    {{ return('') }}
  {%- endif -%}
  {%- for row in run_query(
    'select schema_name, table_name, count(*) from ' ~ deletes
    ~ ' where (schema_name, table_name, table_version) in (' ~ versions | join(', ') ~ ') group by schema_name, table_name order by schema_name, table_name'
  ) -%}
    {% do exceptions.warn(model.name ~ ': ' ~ adapter.empty_deletes(row[0], row[1], row[2] | int)) %}
    {% do range.update({'empty_delete_count': range.empty_delete_count + row[2] | int}) %}
  {%- endfor -%}
{% endmacro %}
