-- one row per table or partition that a statement added and that no dispatcher reads yet: its rows are still to come
{{ config(materialized='view') }}

with ddl_events as (
    select * from {{ ref('stg_ddl_events') }} where error_reason is null and not is_not_synced
),

dispatchers as (
    select * from {{ ref('int_dispatchers') }}
),

added as (
    select distinct
        upstream_id,
        finished_ts,
        schema_name,
        table_name,
        transform(tables, item -> item.table_id) as logical_table_ids,
        explode(
            transform(
                from_json(body, 'need_added_tables array<struct<TableID: bigint>>').need_added_tables,
                added -> added.`TableID`
            )
        ) as physical_table_id
    from ddl_events
),

dropped as (
    select distinct
        upstream_id,
        finished_ts,
        explode(dropped_table_ids) as physical_table_id
    from ddl_events
),

dropped_schemas as (
    select distinct upstream_id, finished_ts, schema_name from ddl_events where ddl_type = 2
),

final as (
    select
        added.upstream_id,
        added.physical_table_id,
        added.schema_name,
        added.table_name,
        max(added.finished_ts) as added_ts
    from added
    -- which partition a dispatcher reads is known with its first row only
    left anti join dispatchers
        on
            added.upstream_id = dispatchers.upstream_id
            and (
                added.physical_table_id = dispatchers.physical_table_id
                or array_contains(added.logical_table_ids, dispatchers.table_id)
            )
    left anti join dropped
        on
            added.upstream_id = dropped.upstream_id
            and added.physical_table_id = dropped.physical_table_id
            and added.finished_ts < dropped.finished_ts
    left anti join dropped_schemas
        on
            added.upstream_id = dropped_schemas.upstream_id
            and added.schema_name = dropped_schemas.schema_name
            and added.finished_ts < dropped_schemas.finished_ts
    group by added.upstream_id, added.physical_table_id, added.schema_name, added.table_name
)

select * from final
