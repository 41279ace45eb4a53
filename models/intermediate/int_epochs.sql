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

-- everything that is known of an epoch, side by side
facts as (
    select
        upstream_id,
        dispatcher_id,
        epoch,
        seq,
        `table`.table_id,
        -- the rows of a table without partitions have its id
        case when not `table`.is_partition then `table`.table_id end as physical_table_id,
        `table`.schema_name,
        `table`.table_name,
        resolved_ts as start_ts,
        cast(null as bigint) as known_seq,
        cast(null as bigint) as known_resolved_ts,
        cast(null as array<bigint>) as waiting_seqs,
        cast(null as array<struct<seq: bigint, resolved_ts: bigint>>) as waiting_resolved
    from handshakes
    union all
    select
        upstream_id, dispatcher_id, epoch, seq, null, physical_table_id, null, null, null, null, null, null, null
    from transactions
    union all
    select upstream_id, dispatcher_id, epoch, seq, null, null, null, null, null, null, null, null, null
    from ddl_events
    union all
    select upstream_id, dispatcher_id, epoch, seq, null, null, null, null, null, null, null, null, null
    from sync_points
    union all
    select
        upstream_id, dispatcher_id, epoch, null, null, null, null, null, null, null, null, null,
        array(struct(seq, resolved_ts))
    from resolved_events
    union all
    select
        upstream_id, dispatcher_id, epoch, null, table_id, physical_table_id, schema_name, table_name, start_ts,
        last_seq, resolved_ts, waiting_seqs, waiting_resolved
    from previous
),

-- an event may be delivered more than once: a set keeps one of each
gathered as (
    select
        upstream_id,
        dispatcher_id,
        epoch,
        max(table_id) as table_id,
        max(physical_table_id) as physical_table_id,
        max(schema_name) as schema_name,
        max(table_name) as table_name,
        min(start_ts) as start_ts,
        coalesce(max(known_seq), 0) as known_seq,
        max(known_resolved_ts) as known_resolved_ts,
        array_sort(array_union(collect_set(seq), flatten(collect_list(waiting_seqs)))) as seqs,
        array_distinct(flatten(collect_list(waiting_resolved))) as resolved
    from facts
    group by upstream_id, dispatcher_id, epoch
),

new_events as (
    select
        *,
        filter(seqs, seq -> seq > known_seq) as new_seqs
    from gathered
),

-- a handshake opens an epoch with seq 1, and every event takes the next number: up to the first gap all are there
advanced as (
    select
        *,
        known_seq + size(
            filter(transform(new_seqs, (seq, place) -> seq = known_seq + place + 1), in_order -> in_order)
        ) as last_seq
    from new_events
),

-- a resolved event counts once all events up to its seq are there
final as (
    select
        upstream_id,
        dispatcher_id,
        epoch,
        table_id,
        physical_table_id,
        schema_name,
        table_name,
        start_ts,
        last_seq,
        greatest(
            known_resolved_ts,
            array_max(transform(filter(resolved, event -> event.seq <= last_seq), event -> event.resolved_ts))
        ) as resolved_ts,
        filter(new_seqs, seq -> seq > last_seq) as waiting_seqs,
        filter(resolved, event -> event.seq > last_seq) as waiting_resolved,
        cast({{ current_batch }} as bigint) as batch_id
    from advanced
    where {{ current_batch }} > {{ last_batch }}
)

select * from final
