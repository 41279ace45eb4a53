{# What the calling model kept for the last batch it handled; before its first run an empty relation of these columns. #}
{% macro previous_rows(columns) %}
  {%- if tidemark.is_kept() -%}
    select {{ columns.keys() | join(', ') }} from {{ this }} where batch_id = {{ tidemark.last_batch() }}
  {%- else -%}
    select
    {%- for name, type in columns.items() %} cast(null as {{ type }}) as {{ name }}{{ ',' if not loop.last }}{% endfor %}
    from values (1) as nothing (one) where false
  {%- endif -%}
{% endmacro %}
