{#
  Whether an expression of an event filter is true for a row change: an insert is judged by its new row, a delete by its old one, an update by both. Each version of a table has its own
  columns, so each has its own condition. Rows of a version that came after this was written are an error, and never pass unjudged.
#}
{% macro is_ignored_by_value() %}
  {%- set version, cases = tidemark.value_version('row_changes'), [] -%}
  {%- for layout in tidemark.value_layouts() -%}
    {%- set ops = [] -%}
    {%- for op, condition in layout.conditions.items() -%}
      {% do ops.append("when '" ~ op ~ "' then " ~ condition) %}
    {%- endfor -%}
    {% do cases.append(
      'when ' ~ version ~ ' in (' ~ tidemark.text_literals(layout.versions) ~ ') then case row_changes.op ' ~ ops | join(' ') ~ ' end'
    ) %}
  {%- endfor -%}
  {{ return(
    'coalesce(case ' ~ cases | join(' ') ~ ' when size(table_filter.value_filters) > 0 then cast(raise_error(concat('
    ~ "'row_policy has no condition for the version of ', row_changes.schema_name, '.', row_changes.table_name, ' that a row was written with: run row_policy again'"
    ~ ')) as boolean) end, false)'
  ) }}
{% endmacro %}


{# What tells the versions of tables apart, as one text. #}
{% macro value_version(relation) %}
  {%- set columns = [] -%}
  {%- for name in ('upstream_id', 'table_id', 'table_version', 'schema_name', 'table_name') -%}{% do columns.append(relation ~ '.' ~ name) %}{%- endfor -%}
  {{ return("concat_ws('\\n', " ~ columns | join(', ') ~ ')') }}
{% endmacro %}
