-- one row per dispatcher, as it stands after the last batch: whose table it reads, how far, and whether it still counts
{{ config(materialized='view') }}

with epochs as (
    select * from {{ ref('int_epochs') }}
    where batch_id = (select max(epochs.batch_id) from {{ ref('int_epochs') }} as epochs)
),

ddl_events as (
    select * from {{ ref('stg_ddl_events') }} where error_reason is null
),

dispatchers as (
    select
        upstream_id,
        dispatcher_id,
        max(table_id) as table_id,
        -- the table of a dispatcher that has sent no row is known, but not which partition of it
        coalesce(max(physical_table_id), max(table_id)) as physical_table_id,
        max(physical_table_id) is not null as is_partition_known,
        max_by(schema_name, epoch) as schema_name,
        max_by(table_name, epoch) as table_name,
        min(start_ts) as start_ts,
        coalesce(max(resolved_ts), max(start_ts)) as resolved_ts,
        max(epoch) as epoch,
        max_by(last_seq, epoch) as last_seq,
        max_by(waiting_seqs, epoch) as waiting_seqs
    from epochs
    group by upstream_id, dispatcher_id
),

dropped_tables as (
    select upstream_id, finished_ts, explode(dropped_table_ids) as physical_table_id from ddl_events
),

dropped_schemas as (
    select distinct upstream_id, schema_name, finished_ts from ddl_events where ddl_type = 2
),

drops as (
    select
        dispatchers.upstream_id,
        dispatchers.dispatcher_id,
        min(coalesce(dropped_tables.finished_ts, dropped_schemas.finished_ts)) as dropped_ts
    from dispatchers
    left join dropped_tables
        on
            dispatchers.upstream_id = dropped_tables.upstream_id
            and dispatchers.physical_table_id = dropped_tables.physical_table_id
            and dispatchers.start_ts <= dropped_tables.finished_ts
    left join dropped_schemas
        on
            dispatchers.upstream_id = dropped_schemas.upstream_id
            and dispatchers.schema_name = dropped_schemas.schema_name
            and dispatchers.start_ts <= dropped_schemas.finished_ts
    group by dispatchers.upstream_id, dispatchers.dispatcher_id
),

-- a dispatcher whose table is read by a later one was re-created elsewhere; of those that began at one ts, the one ahead counts
successors as (
    select
        upstream_id,
        dispatcher_id,
        lead(start_ts) over (
            partition by upstream_id, physical_table_id
            order by start_ts, resolved_ts, dispatcher_id
        ) as replaced_ts
    from dispatchers
    where start_ts is not null and is_partition_known
),

final as (
    select
        dispatchers.*,
        least(drops.dropped_ts, successors.replaced_ts) as retired_ts,
        case
            when least(drops.dropped_ts, successors.replaced_ts) is not null then 'retired'
            when dispatchers.resolved_ts is null and dispatchers.physical_table_id is null then 'trigger'
            when size(dispatchers.waiting_seqs) > 0 then 'blocked'
            else 'live'
        end as status
    from dispatchers
    left join drops using (upstream_id, dispatcher_id)
    left join successors using (upstream_id, dispatcher_id)
)

select * from final
