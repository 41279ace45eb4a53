-- one row per upstream and batch: the ts up to which everything of the upstream is there after that batch
{% set last_batch, current_batch = tidemark.last_batch(), tidemark.current_batch() %}

with previous as (
    {{ tidemark.previous_rows({'upstream_id': 'string', 'checkpoint_ts': 'bigint', 'open_from_batch': 'bigint'}) }}
),

dispatchers as (
    select * from {{ ref('int_dispatchers') }}
),

awaited_tables as (
    select * from {{ ref('int_awaited_tables') }}
),

epochs as (
    select * from {{ ref('int_epochs') }} where batch_id = {{ current_batch }}
),

transactions as (
    select * from {{ ref('stg_transactions') }} where error_reason is null
),

-- a table that was added holds the checkpoint at its creation until its dispatcher is there
awaited as (
    select
        upstream_id,
        min(added_ts) as added_ts
    from awaited_tables
    group by upstream_id
),

-- the smallest resolved ts over the dispatchers that still count; a table trigger counts once it sends resolved events
resolved as (
    select
        upstream_id,
        coalesce(
            min(case when status in ('live', 'blocked') then coalesce(resolved_ts, 0) end),
            max(greatest(resolved_ts, retired_ts)),
            0
        ) as resolved_ts
    from dispatchers
    group by upstream_id
),

reached as (
    select
        resolved.upstream_id,
        least(resolved.resolved_ts, awaited.added_ts) as checkpoint_ts
    from resolved
    left join awaited on resolved.upstream_id = awaited.upstream_id
),

advanced as (
    select
        coalesce(reached.upstream_id, previous.upstream_id) as upstream_id,
        -- a checkpoint never moves back
        greatest(coalesce(reached.checkpoint_ts, 0), coalesce(previous.checkpoint_ts, 0)) as checkpoint_ts,
        coalesce(previous.checkpoint_ts, 0) as previous_checkpoint_ts,
        coalesce(previous.open_from_batch, 0) as open_from_batch
    from reached
    full outer join previous on reached.upstream_id = previous.upstream_id
),

-- where the next run has to look for transactions that wait
waiting as (
    select
        transactions.upstream_id,
        min(transactions.batch_id) as open_from_batch
    from transactions
    inner join advanced on transactions.upstream_id = advanced.upstream_id
    inner join epochs
        on
            transactions.upstream_id = epochs.upstream_id
            and transactions.dispatcher_id = epochs.dispatcher_id
            and transactions.epoch = epochs.epoch
    where
        transactions.batch_id >= advanced.open_from_batch
        and (transactions.commit_ts > advanced.checkpoint_ts or transactions.seq > epochs.last_seq)
    group by transactions.upstream_id
),

final as (
    select
        advanced.upstream_id,
        advanced.checkpoint_ts,
        advanced.previous_checkpoint_ts,
        coalesce(waiting.open_from_batch, {{ current_batch }} + 1) as open_from_batch,
        cast({{ current_batch }} as bigint) as batch_id
    from advanced
    left join waiting on advanced.upstream_id = waiting.upstream_id
    where {{ current_batch }} > {{ last_batch }}
)

select * from final
