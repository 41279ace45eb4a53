-- one row per epoch of a dispatcher, as it stands after the last batch: how far its events are complete
{{ config(keeps='last_batch') }}
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
        'complete_ts': 'bigint',
        'dropped_ts': 'bigint',
        'waiting_events': 'array<struct<seq: bigint, commit_ts: bigint>>',
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
        struct(seq, cast(null as bigint) as commit_ts) as event,
        cast(null as struct<seq: bigint, resolved_ts: bigint>) as resolved_event,
        `table`.table_id,
        -- the rows of a table without partitions have its id
        case when not `table`.is_partition then `table`.table_id end as physical_table_id,
        `table`.schema_name,
        `table`.table_name,
        resolved_ts as start_ts,
        cast(null as bigint) as dropped_ts,
        cast(null as bigint) as known_seq,
        cast(null as bigint) as known_resolved_ts,
        cast(null as bigint) as known_complete_ts,
        cast(null as array<struct<seq: bigint, commit_ts: bigint>>) as waiting_events,
        cast(null as array<struct<seq: bigint, resolved_ts: bigint>>) as waiting_resolved
    from handshakes
    union all
    select
        upstream_id, dispatcher_id, epoch, struct(seq, commit_ts), null,
        null, physical_table_id, null, null, null, null, null, null, null, null, null
    from transactions
    union all
    -- a dispatcher whose database or table is dropped, or whose table is truncated, ends with that statement
    select
        upstream_id, dispatcher_id, epoch, struct(seq, finished_ts), null,
        null, null, null, null, null, case when ddl_type in (2, 4, 11) then finished_ts end, null, null, null, null, null
    from ddl_events
    union all
    select
        upstream_id, dispatcher_id, epoch, struct(seq, commit_ts), null,
        null, null, null, null, null, null, null, null, null, null, null
    from sync_points
    union all
    select
        upstream_id, dispatcher_id, epoch, null, struct(seq, resolved_ts),
        null, null, null, null, null, null, null, null, null, null, null
    from resolved_events
    union all
    select
        upstream_id, dispatcher_id, epoch, null, null,
        table_id, physical_table_id, schema_name, table_name, start_ts, dropped_ts,
        last_seq, resolved_ts, complete_ts, waiting_events, waiting_resolved
    from previous
),

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
        min(dropped_ts) as dropped_ts,
        coalesce(max(known_seq), 0) as known_seq,
        max(known_resolved_ts) as known_resolved_ts,
        max(known_complete_ts) as known_complete_ts,
        sort_array(concat(collect_list(event), flatten(collect_list(waiting_events)))) as events,
        concat(collect_list(resolved_event), flatten(collect_list(waiting_resolved))) as resolved
    from facts
    group by upstream_id, dispatcher_id, epoch
),

-- an event may be delivered more than once
new_events as (
    select
        * except (events),
        filter(
            events, (event, place) -> event.seq > greatest(known_seq, get(events, place - 1).seq)
        ) as events
    from gathered
),

-- a handshake opens an epoch with seq 1, and every event takes the next number: up to the first gap all are there
ordered as (
    select
        *,
        filter(events, (event, place) -> event.seq = known_seq + place + 1) as events_in_order
    from new_events
),

-- a resolved event counts once all events up to its seq are there
advanced as (
    select
        *,
        known_seq + size(events_in_order) as last_seq,
        greatest(
            known_resolved_ts,
            array_max(
                transform(
                    filter(resolved, event -> event.seq <= known_seq + size(events_in_order)), event -> event.resolved_ts
                )
            )
        ) as resolved_ts
    from ordered
),

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
        resolved_ts,
        -- events come by commit ts: all before the last one in order are there
        greatest(
            known_complete_ts, start_ts, resolved_ts, get(events_in_order, size(events_in_order) - 1).commit_ts - 1
        ) as complete_ts,
        dropped_ts,
        slice(events, size(events_in_order) + 1, size(events)) as waiting_events,
        array_distinct(filter(resolved, event -> event.seq > last_seq)) as waiting_resolved,
        cast({{ current_batch }} as bigint) as batch_id
    from advanced
    where {{ current_batch }} > {{ last_batch }}
)

select * from final
