-- one row per epoch of a dispatcher, as it stands after a batch: how far its events are complete
{% set last_batch, current_batch = tidemark.last_batch(), tidemark.current_batch() %}

with previous as (
    {{ tidemark.previous_rows({
        'upstream_id': 'string',
        'dispatcher_id': 'string',
        'epoch': 'bigint',
        'table_id': 'bigint',
        'physical_table_id': 'bigint',
        'schema_name': 'string',
        'table_name': 'string',
        'start_ts': 'bigint',
        'last_seq': 'bigint',
        'resolved_ts': 'bigint',
        'waiting_seqs': 'array<bigint>',
        'waiting_resolved': 'array<struct<seq: bigint, resolved_ts: bigint>>'
    }) }}
),

handshakes as (
    select * from {{ ref('stg_handshakes') }} where batch_id > {{ last_batch }} and error_reason is null
),

transactions as (
    select * from {{ ref('stg_transactions') }} where batch_id > {{ last_batch }} and error_reason is null
),

ddl_events as (
    select * from {{ ref('stg_ddl_events') }} where batch_id > {{ last_batch }} and error_reason is null
),

sync_points as (
    select * from {{ ref('stg_sync_points') }} where batch_id > {{ last_batch }} and error_reason is null
),

resolved_events as (
    select * from {{ ref('stg_resolved_events') }} where batch_id > {{ last_batch }} and error_reason is null
),

-- `union` keeps one of each: an event may be delivered more than once
numbered_events as (
    select upstream_id, dispatcher_id, epoch, seq from handshakes
    union
    select upstream_id, dispatcher_id, epoch, seq from transactions
    union
    select upstream_id, dispatcher_id, epoch, seq from ddl_events
    union
    select upstream_id, dispatcher_id, epoch, seq from sync_points
    union
    select upstream_id, dispatcher_id, epoch, explode(waiting_seqs) as seq from previous
),

-- a handshake opens an epoch with seq 1, and every event takes the next number
placed_events as (
    select
        numbered_events.*,
        coalesce(previous.last_seq, 0) as known_seq,
        row_number() over (
            partition by numbered_events.upstream_id, numbered_events.dispatcher_id, numbered_events.epoch
            order by numbered_events.seq
        ) as place
    from numbered_events
    left join previous
        on
            numbered_events.upstream_id = previous.upstream_id
            and numbered_events.dispatcher_id = previous.dispatcher_id
            and numbered_events.epoch = previous.epoch
    where numbered_events.seq > coalesce(previous.last_seq, 0)
),

advances as (
    select
        upstream_id,
        dispatcher_id,
        epoch,
        max(case when seq = known_seq + place then seq end) as last_seq,
        sort_array(collect_list(case when seq > known_seq + place then seq end)) as waiting_seqs
    from placed_events
    group by upstream_id, dispatcher_id, epoch
),

openings as (
    select
        upstream_id,
        dispatcher_id,
        epoch,
        max(`table`.table_id) as table_id,
        max(`table`.schema_name) as schema_name,
        max(`table`.table_name) as table_name,
        min(resolved_ts) as start_ts
    from handshakes
    group by upstream_id, dispatcher_id, epoch
),

written_tables as (
    select
        upstream_id,
        dispatcher_id,
        epoch,
        max(physical_table_id) as physical_table_id
    from transactions
    group by upstream_id, dispatcher_id, epoch
),

all_resolved as (
    select upstream_id, dispatcher_id, epoch, seq, resolved_ts from resolved_events
    union all
    select upstream_id, dispatcher_id, epoch, waiting.seq, waiting.resolved_ts
    from previous lateral view explode(waiting_resolved) exploded as waiting
),

known_epochs as (
    select upstream_id, dispatcher_id, epoch from previous
    union
    select upstream_id, dispatcher_id, epoch from advances
    union
    select upstream_id, dispatcher_id, epoch from all_resolved
),

reached as (
    select
        known_epochs.upstream_id,
        known_epochs.dispatcher_id,
        known_epochs.epoch,
        coalesce(previous.table_id, openings.table_id) as table_id,
        coalesce(previous.physical_table_id, written_tables.physical_table_id) as physical_table_id,
        coalesce(previous.schema_name, openings.schema_name) as schema_name,
        coalesce(previous.table_name, openings.table_name) as table_name,
        coalesce(previous.start_ts, openings.start_ts) as start_ts,
        coalesce(advances.last_seq, previous.last_seq, 0) as last_seq,
        coalesce(advances.waiting_seqs, cast(array() as array<bigint>)) as waiting_seqs,
        previous.resolved_ts
    from known_epochs
    left join previous using (upstream_id, dispatcher_id, epoch)
    left join advances using (upstream_id, dispatcher_id, epoch)
    left join openings using (upstream_id, dispatcher_id, epoch)
    left join written_tables using (upstream_id, dispatcher_id, epoch)
),

-- a resolved event counts once all events up to its seq are there
confirmed as (
    select
        all_resolved.upstream_id,
        all_resolved.dispatcher_id,
        all_resolved.epoch,
        max(case when all_resolved.seq <= reached.last_seq then all_resolved.resolved_ts end) as resolved_ts,
        collect_set(
            case when all_resolved.seq > reached.last_seq then struct(all_resolved.seq, all_resolved.resolved_ts) end
        ) as waiting_resolved
    from all_resolved
    inner join reached using (upstream_id, dispatcher_id, epoch)
    group by all_resolved.upstream_id, all_resolved.dispatcher_id, all_resolved.epoch
),

final as (
    select
        reached.upstream_id,
        reached.dispatcher_id,
        reached.epoch,
        reached.table_id,
        reached.physical_table_id,
        reached.schema_name,
        reached.table_name,
        reached.start_ts,
        reached.last_seq,
        greatest(reached.resolved_ts, confirmed.resolved_ts) as resolved_ts,
        reached.waiting_seqs,
        coalesce(
            confirmed.waiting_resolved, cast(array() as array<struct<seq: bigint, resolved_ts: bigint>>)
        ) as waiting_resolved,
        cast({{ current_batch }} as bigint) as batch_id
    from reached
    left join confirmed using (upstream_id, dispatcher_id, epoch)
    where {{ current_batch }} > {{ last_batch }}
)

select * from final
