-- one row per log file: whether all of it is handled, which sinks still need it, and since when it may be deleted
{% set handled_batch = tidemark.handled_batch() %}

with segments as (
    select * from {{ ref('log_segments') }}
),

sent_transactions as (
    select * from {{ ref('stg_transactions') }} where error_reason is null
),

transactions as (
    select * from {{ ref('int_transactions') }} where batch_id <= {{ handled_batch }}
),

epochs as (
    select * from {{ ref('int_epochs') }}
),

dispatchers as (
    select * from {{ ref('int_dispatchers') }}
),

checkpoints as (
    select * from {{ ref('int_checkpoints') }} where batch_id <= {{ handled_batch }}
),

handshakes as (
    select * from {{ ref('stg_handshakes') }} where error_reason is null
),

ddl_events as (
    select * from {{ ref('stg_ddl_events') }} where error_reason is null
),

sink_runs as (
    select * from {{ ref('sink_checkpoints') }} where {{ tidemark.is_counted_sink() }}
),

files as (
    select
        upstream_id,
        file,
        max(segment_end) as planned_bytes,
        max(log_size) as log_size,
        max_by(torn_bytes, struct(batch_id, segment_end)) as torn_bytes,
        min(batch_id) as first_batch,
        max(batch_id) as last_batch
    from segments
    group by upstream_id, file
),

last_checkpoints as (
    select
        upstream_id,
        max_by(struct(checkpoint_ts, open_from_batch), batch_id) as last
    from checkpoints
    group by upstream_id
),

-- by the rule of int_checkpoints; while a batch is not handled, all that was open before it may be part of it
waiting as (
    select distinct
        sent_transactions.upstream_id,
        sent_transactions.dispatcher_id,
        sent_transactions.epoch,
        sent_transactions.file
    from sent_transactions
    left join last_checkpoints on sent_transactions.upstream_id = last_checkpoints.upstream_id
    left join epochs
        on
            sent_transactions.upstream_id = epochs.upstream_id
            and sent_transactions.dispatcher_id = epochs.dispatcher_id
            and sent_transactions.epoch = epochs.epoch
    where
        sent_transactions.batch_id >= coalesce(last_checkpoints.last.open_from_batch, 0)
        and (
            coalesce(sent_transactions.commit_ts > last_checkpoints.last.checkpoint_ts, true)
            or coalesce(sent_transactions.seq > epochs.last_seq, true)
            or (select max(segments.batch_id) from segments) > {{ handled_batch }}
        )
),

schema_places as (
    select upstream_id, dispatcher_id, epoch, file, resolved_ts as commit_ts, batch_id, false as is_statement from handshakes
    union all
    select upstream_id, dispatcher_id, epoch, file, finished_ts as commit_ts, batch_id, true as is_statement from ddl_events
),

-- rows of these may still come
open_epochs as (
    select
        upstream_id,
        dispatcher_id,
        explode(array_union(array(epoch), coalesce(gaps.epoch, array()))) as epoch
    from dispatchers
    where status <> 'retired' and table_id is not null
    union
    select
        upstream_id,
        dispatcher_id,
        epoch
    from waiting
),

waiting_files as (
    select distinct
        upstream_id,
        file
    from waiting
),

epoch_ends as (
    select
        upstream_id,
        dispatcher_id,
        epoch,
        max(commit_ts) as commit_ts,
        max(batch_id) as batch_id
    from transactions
    group by upstream_id, dispatcher_id, epoch
),

-- who reads a row also reads the Handshake and the statements of its epoch, which may be in an earlier file
uses as (
    select upstream_id, file, commit_ts, batch_id, false as holds_schemas from transactions
    union all
    select upstream_id, file, commit_ts, batch_id, false as holds_schemas from schema_places where is_statement
    union all
    select
        schema_places.upstream_id,
        schema_places.file,
        epoch_ends.commit_ts,
        epoch_ends.batch_id,
        open_epochs.epoch is not null as holds_schemas
    from schema_places
    left join epoch_ends
        on
            schema_places.upstream_id = epoch_ends.upstream_id
            and schema_places.dispatcher_id = epoch_ends.dispatcher_id
            and schema_places.epoch = epoch_ends.epoch
    left join open_epochs
        on
            schema_places.upstream_id = open_epochs.upstream_id
            and schema_places.dispatcher_id = open_epochs.dispatcher_id
            and schema_places.epoch = open_epochs.epoch
),

last_uses as (
    select
        upstream_id,
        file,
        max(commit_ts) as last_commit_ts,
        max(batch_id) as last_row_batch,
        max(holds_schemas) as holds_schemas
    from uses
    group by upstream_id, file
),

described as (
    select
        files.*,
        last_uses.last_commit_ts,
        coalesce(last_uses.last_row_batch, 0) as last_row_batch,
        coalesce(last_uses.holds_schemas, false) as holds_schemas,
        files.torn_bytes = 0 and files.last_batch <= {{ handled_batch }} and waiting_files.file is null as is_handled
    from files
    left join last_uses on files.upstream_id = last_uses.upstream_id and files.file = last_uses.file
    left join waiting_files on files.upstream_id = waiting_files.upstream_id and files.file = waiting_files.file
),

-- batches of another log plan have other numbers: there the commit ts alone decides
sink_positions as (
    select
        {{ tidemark.sink_name() }} as sink_name,
        checkpoint_ts,
        case
            when plan_id = {{ tidemark.text_literal(tidemark.log_plan_id()) }} then batch_id
            else {{ 2 ** 63 - 1 }}
        end as batch_id,
        written_at
    from sink_runs
),

sink_names as (
    select sink_name from sink_positions
    union
    select explode(cast(array({{ tidemark.text_literals(tidemark.unstarted_sinks()) }}) as array<string>)) as sink_name
),

-- when a sink had passed all rows of a file; null while it has not
passed as (
    select
        described.upstream_id,
        described.file,
        sink_names.sink_name,
        min(sink_positions.written_at) as passed_at
    from described
    cross join sink_names
    left join sink_positions
        on
            sink_names.sink_name = sink_positions.sink_name
            and coalesce(described.last_commit_ts, 0) <= sink_positions.checkpoint_ts
            and described.last_row_batch <= sink_positions.batch_id
    group by described.upstream_id, described.file, sink_names.sink_name
),

needs as (
    select
        upstream_id,
        file,
        sort_array(collect_list(case when passed_at is null then sink_name end)) as needed_by,
        max(passed_at) as passed_at
    from passed
    group by upstream_id, file
),

-- with the batch that completed its last row; the upper bits of a ts are milliseconds
completed as (
    select
        described.upstream_id,
        described.file,
        timestamp_millis(shiftright(min(checkpoints.checkpoint_ts), 18)) as completed_at
    from described
    inner join checkpoints
        on
            described.upstream_id = checkpoints.upstream_id
            and greatest(described.last_batch, described.last_row_batch) <= checkpoints.batch_id
    group by described.upstream_id, described.file
),

final as (
    select
        described.upstream_id,
        described.file,
        described.planned_bytes,
        described.log_size,
        described.torn_bytes,
        described.first_batch,
        described.last_batch,
        described.last_commit_ts,
        described.is_handled,
        described.holds_schemas,
        coalesce(needs.needed_by, cast(array() as array<string>)) as needed_by,
        case
            when described.is_handled and not described.holds_schemas and coalesce(size(needs.needed_by), 0) = 0
                then greatest(completed.completed_at, needs.passed_at)
        end as may_be_deleted_since
    from described
    left join needs on described.upstream_id = needs.upstream_id and described.file = needs.file
    left join completed on described.upstream_id = completed.upstream_id and described.file = completed.file
)

select * from final
