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

-- nothing waits in the batches before those that the last run left open
transactions as (
    select * from {{ ref('stg_transactions') }}
    where
        error_reason is null
        and batch_id >= coalesce((select min(previous.open_from_batch) from previous), 0)
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

sent as (
    select
        transactions.upstream_id,
        transactions.batch_id,
        transactions.commit_ts,
        transactions.seq > epochs.last_seq as is_behind_gap
    from transactions
    inner join epochs
        on
            transactions.upstream_id = epochs.upstream_id
            and transactions.dispatcher_id = epochs.dispatcher_id
            and transactions.epoch = epochs.epoch
),

-- transactions that wait say where the next run has to look for them
final as (
    select
        advanced.upstream_id,
        advanced.checkpoint_ts,
        advanced.previous_checkpoint_ts,
        coalesce(min(sent.batch_id), {{ current_batch }} + 1) as open_from_batch,
        cast({{ current_batch }} as bigint) as batch_id
    from advanced
    left join sent
        on
            advanced.upstream_id = sent.upstream_id
            and advanced.open_from_batch <= sent.batch_id
            and (advanced.checkpoint_ts < sent.commit_ts or sent.is_behind_gap)
    where {{ current_batch }} > {{ last_batch }}
    group by advanced.upstream_id, advanced.checkpoint_ts, advanced.previous_checkpoint_ts
)

select * from final
