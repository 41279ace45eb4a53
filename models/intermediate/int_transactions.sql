-- one row per transaction of a table that a batch completed: exactly one of the copies that the logs hold
{% set last_batch, current_batch = tidemark.last_batch(), tidemark.current_batch() %}

with transactions as (
    select * from {{ ref('stg_transactions') }} where error_reason is null
),

checkpoints as (
    select * from {{ ref('int_checkpoints') }}
),

epochs as (
    select * from {{ ref('int_epochs') }}
),

handled_checkpoints as (
    select * from checkpoints where batch_id = {{ last_batch }}
),

new_checkpoints as (
    select * from checkpoints where batch_id = {{ current_batch }}
),

-- a table that is new to us may begin before the last checkpoint
handled_tables as (
    select distinct upstream_id, physical_table_id from epochs
    where batch_id = {{ last_batch }} and physical_table_id is not null
),

completed as (
    select transactions.*
    from transactions
    inner join new_checkpoints on transactions.upstream_id = new_checkpoints.upstream_id
    left join handled_checkpoints on transactions.upstream_id = handled_checkpoints.upstream_id
    left join handled_tables
        on
            transactions.upstream_id = handled_tables.upstream_id
            and transactions.physical_table_id = handled_tables.physical_table_id
    where
        {{ current_batch }} > {{ last_batch }}
        and transactions.batch_id >= coalesce(handled_checkpoints.open_from_batch, 0)
        and transactions.commit_ts <= new_checkpoints.checkpoint_ts
        and (
            handled_tables.upstream_id is null
            or transactions.commit_ts > coalesce(handled_checkpoints.checkpoint_ts, 0)
        )
),

-- a dispatcher that was re-created sends again what it had sent: the last epoch has all of it
latest_copy as (
    select
        *,
        max(struct(epoch, dispatcher_id)) over (
            partition by upstream_id, physical_table_id, start_ts, commit_ts
        ) as kept_copy
    from completed
),

-- the same event in two files, or in a file that was delivered twice
delivered_once as (
    select
        *,
        row_number() over (
            partition by upstream_id, dispatcher_id, epoch, seq
            order by file, `offset`
        ) as delivery
    from latest_copy
    where struct(epoch, dispatcher_id) = kept_copy
),

final as (
    select
        upstream_id,
        file,
        `offset`,
        dispatcher_id,
        epoch,
        seq,
        physical_table_id,
        start_ts,
        commit_ts,
        row_count,
        cast({{ current_batch }} as bigint) as batch_id
    from delivered_once
    where delivery = 1
)

select * from final
