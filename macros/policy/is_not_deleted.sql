{# Whether a value of _tidb_softdelete_time says that the row is there. #}
{% macro is_not_deleted(softdelete_time) -%}
  {%- if tidemark.soft_delete_starts_from_zero() -%}
    coalesce({{ softdelete_time }} rlike '^[0 :.-]*$', true)
  {%- else -%}
    ({{ softdelete_time }} is null)
  {%- endif -%}
{%- endmacro %}
