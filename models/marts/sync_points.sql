-- one row per sync point of an upstream: a ts at which the changefeed and its target agree, and whether all up to it is here
with received as (
    select * from {{ ref('stg_sync_points') }} where error_reason is null
),

checkpoints as (
    select
        upstream_id,
        max(checkpoint_ts) as checkpoint_ts
    from {{ ref('int_checkpoints') }}
    group by upstream_id
),

final as (
    select
        received.upstream_id,
        received.commit_ts as sync_point_ts,
        count(distinct received.dispatcher_id) as dispatcher_count,
        received.commit_ts <= any_value(checkpoints.checkpoint_ts) as is_complete
    from received
    left join checkpoints on received.upstream_id = checkpoints.upstream_id
    group by received.upstream_id, received.commit_ts
)

select * from final
