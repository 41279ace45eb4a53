-- one row per transaction that came after the checkpoint had passed it, and per sink that was past it: what the sink did with it
{{ config(materialized='view', inline_ctes=true) }}

with transactions as (
    select * from {{ ref('int_transactions') }}
),

checkpoints as (
    select * from {{ ref('int_checkpoints') }}
),

-- those of another log plan numbered their batches otherwise
sink_runs as (
    select * from {{ ref('sink_checkpoints') }}
    where sink <> 'progress' and plan_id = {{ tidemark.text_literal(tidemark.log_plan_id()) }}
),

-- sinks go as far as the last of the upstreams, and never back
reached as (
    select
        batch_id,
        min(checkpoint_ts) as checkpoint_ts
    from checkpoints
    group by batch_id
),

before_batches as (
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
        greatest(checkpoints.previous_checkpoint_ts, coalesce(before_batches.checkpoint_ts, 0)) as checkpoint_ts
    from checkpoints
    inner join before_batches on checkpoints.batch_id = before_batches.batch_id
),

-- the batches that a run of a sink was the first to handle, and how far the sink was before it
handled as (
    select
        changefeed_id,
        sink_uri,
        sink,
        lag(batch_id, 1, 0) over (partition by changefeed_id, sink_uri, sink order by written_at) as after_batch,
        batch_id as up_to_batch,
        max(checkpoint_ts) over (
            partition by changefeed_id, sink_uri, sink order by written_at rows between unbounded preceding and 1 preceding
        ) as sink_ts,
        case late_rows when 'send' then 'sent' when 'skip' then 'skipped' else 'left_out' end as status,
        written_at
    from sink_runs
    union all
    select
        changefeed_id,
        sink_uri,
        sink,
        max(batch_id) as after_batch,
        cast(null as bigint) as up_to_batch,
        max(checkpoint_ts) as sink_ts,
        'waiting' as status,
        cast(null as timestamp) as written_at
    from sink_runs
    group by changefeed_id, sink_uri, sink
),

handled_batches as (
    select
        reached.batch_id,
        handled.*
    from reached
    inner join handled
        on reached.batch_id > handled.after_batch and reached.batch_id <= coalesce(handled.up_to_batch, reached.batch_id)
    where handled.sink_ts is not null
),

final as (
    select
        transactions.upstream_id,
        transactions.dispatcher_id,
        transactions.physical_table_id,
        transactions.start_ts,
        transactions.commit_ts,
        cast(transactions.row_count as bigint) as row_count,
        greatest(passed.checkpoint_ts, handled_batches.sink_ts) as checkpoint_ts,
        case
            when transactions.commit_ts <= passed.previous_checkpoint_ts then 'late_delivery'
            when transactions.commit_ts <= passed.checkpoint_ts then 'added_upstream'
            else 'sink_ahead'
        end as reason,
        coalesce(handled_batches.changefeed_id, '') as changefeed_id,
        coalesce(handled_batches.sink_uri, '') as sink_uri,
        coalesce(handled_batches.sink, '') as sink,
        coalesce(handled_batches.status, 'no_sink') as status,
        case when handled_batches.status = 'sent' then handled_batches.written_at end as sent_at,
        transactions.file,
        transactions.`offset`,
        transactions.batch_id
    from transactions
    inner join passed
        on
            transactions.upstream_id = passed.upstream_id
            and transactions.batch_id = passed.batch_id
    left join handled_batches
        on transactions.batch_id = handled_batches.batch_id and transactions.commit_ts <= handled_batches.sink_ts
    where transactions.commit_ts <= passed.checkpoint_ts or handled_batches.sink is not null
)

select * from final
