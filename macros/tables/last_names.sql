{# The name that each table of an upstream has in the end, as a query over rows of table_versions: a renamed table takes its rows along. #}
{% macro last_names(table_versions) %}
    select
        upstream_id,
        table_id,
        max_by(schema_name, valid_from_ts) as schema_name,
        max_by(table_name, valid_from_ts) as table_name
    from {{ table_versions }}
    group by upstream_id, table_id
{%- endmacro %}


{# Rows of a CTE with that name, as a query; `names` is a CTE as last_names gives it. #}
{% macro with_last_names(rows, names) %}
    select /*+ broadcast({{ names }}) */
        {{ rows }}.* except (schema_name, table_name),
        coalesce({{ names }}.schema_name, {{ rows }}.schema_name) as schema_name,
        coalesce({{ names }}.table_name, {{ rows }}.table_name) as table_name
    from {{ rows }}
    left join {{ names }}
        on {{ rows }}.upstream_id = {{ names }}.upstream_id and {{ rows }}.table_id = {{ names }}.table_id
{%- endmacro %}
