-- one row per transaction that came after the checkpoint had passed it: sinks that were further by then do not have it
with transactions as (
    select * from {{ ref('int_transactions') }}
),

checkpoints as (
    select * from {{ ref('int_checkpoints') }}
),

final as (
    select
        transactions.upstream_id,
        transactions.physical_table_id,
        transactions.start_ts,
        transactions.commit_ts,
        cast(transactions.row_count as bigint) as row_count,
        checkpoints.previous_checkpoint_ts as checkpoint_ts,
        transactions.file,
        transactions.`offset`,
        transactions.batch_id
    from transactions
    inner join checkpoints
        on
            transactions.upstream_id = checkpoints.upstream_id
            and transactions.batch_id = checkpoints.batch_id
    where transactions.commit_ts <= checkpoints.previous_checkpoint_ts
)

select * from final
