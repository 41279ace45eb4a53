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
    select
        upstream_id,
        physical_table_id,
        collect_set(finished_ts) as dropped_ts
    from (select upstream_id, finished_ts, explode(dropped_table_ids) as physical_table_id from ddl_events) as dropped
    group by upstream_id, physical_table_id
),

dropped_schemas as (
    select
        upstream_id,
        schema_name,
        collect_set(finished_ts) as dropped_ts
    from ddl_events
    where ddl_type = 2
    group by upstream_id, schema_name
),

retirements as (
    select
        dispatchers.*,
        coalesce(
            array_min(filter(dropped_tables.dropped_ts, ts -> dispatchers.start_ts <= ts)),
            array_min(filter(dropped_schemas.dropped_ts, ts -> dispatchers.start_ts <= ts))
        ) as dropped_ts,
        -- a dispatcher whose table is read by a later one was re-created elsewhere;
        -- of those that began at one ts, the one ahead counts
        case
            when dispatchers.start_ts is not null and dispatchers.is_partition_known
                then lead(dispatchers.start_ts) over (
                    partition by
                        dispatchers.upstream_id,
                        dispatchers.physical_table_id,
                        dispatchers.start_ts is not null and dispatchers.is_partition_known
                    order by dispatchers.start_ts, dispatchers.resolved_ts, dispatchers.dispatcher_id
                )
        end as replaced_ts
    from dispatchers
    left join dropped_tables
        on
            dispatchers.upstream_id = dropped_tables.upstream_id
            and dispatchers.physical_table_id = dropped_tables.physical_table_id
    left join dropped_schemas
        on
            dispatchers.upstream_id = dropped_schemas.upstream_id
            and dispatchers.schema_name = dropped_schemas.schema_name
),

final as (
    select
        * except (dropped_ts, replaced_ts),
        least(dropped_ts, replaced_ts) as retired_ts,
        case
            when least(dropped_ts, replaced_ts) is not null then 'retired'
            when resolved_ts is null and physical_table_id is null then 'trigger'
            when size(waiting_seqs) > 0 then 'blocked'
            else 'live'
        end as status
    from retirements
)

select * from final
