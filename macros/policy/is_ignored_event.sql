{# Whether an event filter leaves a row change out. Values are looked at only where a filter asks for them: otherwise sinks need not read any. #}
{% macro is_ignored_event() -%}
array_contains(table_filter.ignored_ops, row_changes.op)
        {%- if tidemark.has_ignored_columns() %}
        or row_changes.op = 'update' and exists(
            table_filter.ignored_columns,
            ignored -> {{ tidemark.values_without('row_changes.pre', 'ignored') }}
            = {{ tidemark.values_without('row_changes.post', 'ignored') }}
        )
        {%- endif -%}
        {%- if tidemark.has_value_expressions() %}
        or {{ tidemark.is_ignored_by_value() }}
        {%- endif -%}
{%- endmacro %}
