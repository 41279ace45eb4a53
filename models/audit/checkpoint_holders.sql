-- one row per dispatcher, or added table that has none yet, at which the checkpoint of its upstream stands
with dispatchers as (
    select * from {{ ref('int_dispatchers') }} where status in ('live', 'blocked')
),

awaited_tables as (
    select * from {{ ref('int_awaited_tables') }}
),

checkpoints as (
    select
        upstream_id,
        max(checkpoint_ts) as checkpoint_ts
    from {{ ref('int_checkpoints') }}
    group by upstream_id
),

holders as (
    select
        upstream_id,
        dispatcher_id as holder_id,
        physical_table_id,
        schema_name,
        table_name,
        coalesce(resolved_ts, 0) as held_at_ts,
        case when status = 'blocked' then 'sequence_gap' else 'resolved_ts' end as reason
    from dispatchers
    union all
    select
        upstream_id,
        cast(physical_table_id as string) as holder_id,
        physical_table_id,
        max_by(schema_name, added_ts) as schema_name,
        max_by(table_name, added_ts) as table_name,
        min(added_ts) as held_at_ts,
        'awaited_table' as reason
    from awaited_tables
    group by upstream_id, physical_table_id
),

compared as (
    select
        *,
        max(held_at_ts) over (partition by upstream_id) as furthest_ts
    from holders
),

final as (
    select
        compared.*,
        checkpoints.checkpoint_ts
    from compared
    inner join checkpoints on compared.upstream_id = checkpoints.upstream_id
    where compared.held_at_ts <= checkpoints.checkpoint_ts
)

select * from final
