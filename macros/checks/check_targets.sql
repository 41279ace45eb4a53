{#
  Pre-hook of row_policy: two tables must not be written under one name at the same time, or rows of one would replace those of the other. One after the other may have it: a
  table that was dropped or renamed leaves its name.
#}
{% macro check_targets(table_filter, table_versions) %}
  {%- if execute and tidemark.routing() -%}
    {%- set query -%}
    with named as (
        select
            schema_name,
            table_name,
            target_schema_name,
            target_table_name,
            valid_from_ts,
            valid_to_ts
        from {{ table_versions }}
        inner join {{ table_filter }} using (schema_name, table_name)
        where is_replicated and not is_view
    )

    select distinct
        first.schema_name || '.' || first.table_name as first_table,
        second.schema_name || '.' || second.table_name as second_table,
        first.target_schema_name || '.' || first.target_table_name as target
    from named as first
    inner join named as second using (target_schema_name, target_table_name)
    where
        struct(first.schema_name, first.table_name) < struct(second.schema_name, second.table_name)
        and coalesce(first.valid_to_ts > second.valid_from_ts, true)
        and coalesce(second.valid_to_ts > first.valid_from_ts, true)
    order by first_table, second_table
    {%- endset -%}
    {%- set problems = [] -%}
    {%- for row in run_query(query) -%}
      {% do problems.append(row[0] ~ ' and ' ~ row[1] ~ ' as ' ~ row[2]) %}
    {%- endfor -%}
    {%- if problems -%}
      {% do exceptions.raise_compiler_error(
        'target-schema and target-table of the changefeed have several tables written under one name: ' ~ problems | join('; ')
        ~ '. Their rows would replace each other: give each a name of its own, for example with target-table = "{schema}_{table}", or leave one out with the filter'
      ) %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
