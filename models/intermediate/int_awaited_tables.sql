-- one row per table or partition that a statement added and that no dispatcher reads yet: its rows are still to come
{{ config(materialized='view') }}

with ddl_events as (
    select * from {{ ref('stg_ddl_events') }} where error_reason is null and not is_not_synced
),

epochs as (
    select * from {{ ref('int_epochs') }}
    where batch_id = (select max(epochs.batch_id) from {{ ref('int_epochs') }} as epochs)
),

added as (
    select
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
    select
        upstream_id,
        physical_table_id,
        max(finished_ts) as dropped_ts
    from (select upstream_id, finished_ts, explode(dropped_table_ids) as physical_table_id from ddl_events) as dropped_tables
    group by upstream_id, physical_table_id
),

dropped_schemas as (
    select
        upstream_id,
        schema_name,
        max(finished_ts) as dropped_ts
    from ddl_events
    where ddl_type = 2
    group by upstream_id, schema_name
),

final as (
    select
        added.upstream_id,
        added.physical_table_id,
        added.schema_name,
        added.table_name,
        max(added.finished_ts) as added_ts
    from added
    left join dropped
        on added.upstream_id = dropped.upstream_id and added.physical_table_id = dropped.physical_table_id
    left join dropped_schemas
        on added.upstream_id = dropped_schemas.upstream_id and added.schema_name = dropped_schemas.schema_name
    -- which partition a dispatcher reads is known with its first row only
    left anti join epochs
        on
            added.upstream_id = epochs.upstream_id
            and (
                added.physical_table_id in (epochs.physical_table_id, epochs.table_id)
                or array_contains(added.logical_table_ids, epochs.table_id)
            )
    where
        added.finished_ts >= coalesce(dropped.dropped_ts, 0)
        and added.finished_ts >= coalesce(dropped_schemas.dropped_ts, 0)
    group by added.upstream_id, added.physical_table_id, added.schema_name, added.table_name
)

select * from final
