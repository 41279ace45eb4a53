{#
  Rows of a CTE with the name and `gone_ts` of the table that they are part of, as a query. A row goes with its physical table where that is known by itself: a plain table, or a
  partition that a statement moved or dropped; else with its logical one.

  identities: a CTE of rows of table_identities.
#}
{% macro with_identities(rows, identities) %}
    select /*+ broadcast(physical_tables, logical_tables) */
        {{ rows }}.* except (schema_name, table_name),
        coalesce(physical_tables.schema_name, logical_tables.schema_name, {{ rows }}.schema_name) as schema_name,
        coalesce(physical_tables.table_name, logical_tables.table_name, {{ rows }}.table_name) as table_name,
        if(physical_tables.table_id is null, logical_tables.gone_ts, physical_tables.gone_ts) as gone_ts
    from {{ rows }}
    left join {{ identities }} as physical_tables
        on
            {{ rows }}.upstream_id = physical_tables.upstream_id
            and {{ rows }}.physical_table_id = physical_tables.table_id
    left join {{ identities }} as logical_tables
        on {{ rows }}.upstream_id = logical_tables.upstream_id and {{ rows }}.table_id = logical_tables.table_id
{%- endmacro %}
