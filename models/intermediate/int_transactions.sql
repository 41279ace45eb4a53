-- one row per transaction of a table that a batch completed: exactly one of the copies that the logs hold
{% set last_batch, current_batch = tidemark.last_batch(), tidemark.current_batch() %}
{#- where a table is split over nodes, each dispatcher has a part of its transactions -#}
{% set reader = ', dispatcher_id' if tidemark.are_tables_split() else '' %}
{% set transaction_columns = 'upstream_id, physical_table_id, start_ts, commit_ts' ~ reader %}

with checkpoints as (
    select * from {{ ref('int_checkpoints') }}
),

epochs as (
    select * from {{ ref('int_epochs') }} where batch_id = {{ current_batch }}
),

handled_checkpoints as (
    select * from checkpoints where batch_id = {{ last_batch }}
),

new_checkpoints as (
    select * from checkpoints where batch_id = {{ current_batch }}
),

-- nothing waits in the batches before those that the last run left open
transactions as (
    select * from {{ ref('stg_transactions') }}
    where
        error_reason is null
        and batch_id >= coalesce((select min(handled_checkpoints.open_from_batch) from handled_checkpoints), 0)
),

-- what is behind a gap, or before whose handshake nothing can be read, waits
completed as (
    select
        transactions.*,
        coalesce(epochs.complete_ts >= transactions.commit_ts, false) as is_whole
    from transactions
    inner join new_checkpoints on transactions.upstream_id = new_checkpoints.upstream_id
    inner join epochs
        on
            transactions.upstream_id = epochs.upstream_id
            and transactions.dispatcher_id = epochs.dispatcher_id
            and transactions.epoch = epochs.epoch
    left join handled_checkpoints on transactions.upstream_id = handled_checkpoints.upstream_id
    where
        {{ current_batch }} > {{ last_batch }}
        and transactions.batch_id >= coalesce(handled_checkpoints.open_from_batch, 0)
        and transactions.commit_ts <= new_checkpoints.checkpoint_ts
        and transactions.seq <= epochs.last_seq
),

-- late data may be older than the last checkpoint: what was not taken before is new
{% if tidemark.is_kept() %}
    taken as (
        select distinct {{ transaction_columns }} from {{ this }}
        where batch_id <= {{ last_batch }} and commit_ts >= (select min(transactions.commit_ts) from transactions)
    ),

    not_taken as (
        select completed.*
        from completed
        left anti join taken
            on
                {% for name in transaction_columns.split(', ') %}
                    {{ 'and ' if not loop.first }}completed.{{ name }} = taken.{{ name }}
                {% endfor %}
    ),
{% else %}
    not_taken as (
        select * from completed
    ),
{% endif %}

-- a dispatcher that was re-created sends again what it had sent: the last epoch has all of it, unless the log ends
-- amid the events of a large transaction; the same event may be in two files, or in a file that was delivered twice
copies as (
    select
        *,
        max(struct(is_whole, epoch, dispatcher_id)) over (
            partition by {{ transaction_columns }}
        ) as kept_copy,
        row_number() over (
            partition by upstream_id, physical_table_id, start_ts, commit_ts, dispatcher_id, epoch, seq
            order by file, `offset`
        ) as delivery
    from not_taken
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
    from copies
    where delivery = 1 and struct(is_whole, epoch, dispatcher_id) = kept_copy
)

select * from final
