-- one row per table or partition that a statement added and that no dispatcher reads yet: its rows are still to come
{{ config(materialized='view') }}

-- a statement that the changefeed does not send on adds its tables all the same; few rows, in one partition: nothing is shuffled
with ddl_events as (
    select /*+ coalesce(1) */ * from {{ ref('stg_ddl_events') }} where error_reason is null
),

epochs as (
    select /*+ coalesce(1) */ * from {{ ref('int_epochs') }}
    where batch_id = (select max(epochs.batch_id) from {{ ref('int_epochs') }} as epochs)
),

-- every dispatcher has a copy of a statement: a set keeps one of each
statements as (
    select
        upstream_id,
        flatten(
            collect_set(
                transform(
                    from_json(body, 'need_added_tables array<struct<TableID: bigint>>').need_added_tables,
                    added -> struct(
                        finished_ts as added_ts,
                        added.`TableID` as physical_table_id,
                        schema_name,
                        table_name,
                        array_distinct(tables.table_id) as table_ids
                    )
                )
            )
        ) as added,
        flatten(
            collect_set(transform(dropped_table_ids, id -> struct(id as table_id, finished_ts as ts)))
        ) as dropped,
        collect_set(case when ddl_type = 2 then struct(schema_name, finished_ts as ts) end) as dropped_schemas
    from ddl_events
    group by upstream_id
),

dispatchers as (
    select
        upstream_id,
        max(table_id) as table_id,
        max(physical_table_id) as physical_table_id,
        min(start_ts) as start_ts
    from epochs
    group by upstream_id, dispatcher_id
),

-- which partition a dispatcher reads is known with its first row only
readers as (
    select
        upstream_id,
        -- the table trigger reads none
        collect_list(
            case
                when coalesce(physical_table_id, table_id) is not null
                    then struct(coalesce(physical_table_id, table_id) as table_id, start_ts)
            end
        ) as reading,
        collect_list(case when physical_table_id is null then struct(table_id, start_ts) end) as idle
    from dispatchers
    group by upstream_id
),

unread as (
    select
        statements.upstream_id,
        readers.idle,
        filter(
            statements.added,
            item -> not exists(
                coalesce(readers.reading, array()),
                reader -> reader.table_id = item.physical_table_id
                -- a table that is recovered has its id again, and had a dispatcher before it was dropped
                and not exists(
                    statements.dropped,
                    drop -> drop.table_id = item.physical_table_id
                    and drop.ts < item.added_ts
                    and coalesce(reader.start_ts <= drop.ts, true)
                )
            )
            and not exists(
                statements.dropped, drop -> drop.table_id = item.physical_table_id and drop.ts > item.added_ts
            )
            and not exists(
                statements.dropped_schemas, drop -> drop.schema_name = item.schema_name and drop.ts > item.added_ts
            )
        ) as added
    from statements
    left join readers on statements.upstream_id = readers.upstream_id
),

-- partitions are read once as many dispatchers of the table have begun since then as partitions were added since then
awaited as (
    select
        upstream_id,
        inline(
            filter(
                added,
                item -> size(filter(added, other -> other.table_ids = item.table_ids and other.added_ts >= item.added_ts))
                > size(
                    filter(
                        coalesce(idle, array()),
                        reader -> array_contains(item.table_ids, reader.table_id) and reader.start_ts >= item.added_ts
                    )
                )
            )
        )
    from unread
),

final as (
    select
        upstream_id,
        physical_table_id,
        schema_name,
        table_name,
        max(added_ts) as added_ts
    from awaited
    group by upstream_id, physical_table_id, schema_name, table_name
)

select * from final
