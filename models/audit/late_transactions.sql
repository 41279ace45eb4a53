-- one row per transaction that came after the checkpoint had passed it: sinks that were further by then do not have it
with transactions as (
    select * from {{ ref('int_transactions') }}
),

checkpoints as (
    select * from {{ ref('int_checkpoints') }}
),

-- sinks go as far as the last of the upstreams, and never back
reached as (
    select
        batch_id,
        min(checkpoint_ts) as checkpoint_ts
    from checkpoints
    group by batch_id
),

sinks as (
    select
        batch_id,
        max(checkpoint_ts) over (order by batch_id rows between unbounded preceding and 1 preceding) as checkpoint_ts
    from reached
),

-- an upstream that was added begins before the checkpoint of the others
passed as (
    select
        checkpoints.upstream_id,
        checkpoints.batch_id,
        checkpoints.previous_checkpoint_ts,
        greatest(checkpoints.previous_checkpoint_ts, coalesce(sinks.checkpoint_ts, 0)) as checkpoint_ts
    from checkpoints
    inner join sinks on checkpoints.batch_id = sinks.batch_id
),

final as (
    select
        transactions.upstream_id,
        transactions.physical_table_id,
        transactions.start_ts,
        transactions.commit_ts,
        cast(transactions.row_count as bigint) as row_count,
        passed.checkpoint_ts,
        case
            when transactions.commit_ts <= passed.previous_checkpoint_ts then 'late_delivery'
            else 'added_upstream'
        end as reason,
        transactions.file,
        transactions.`offset`,
        transactions.batch_id
    from transactions
    inner join passed
        on
            transactions.upstream_id = passed.upstream_id
            and transactions.batch_id = passed.batch_id
    where transactions.commit_ts <= passed.checkpoint_ts
)

select * from final
