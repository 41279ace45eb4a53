-- one row per DDL event that a dispatcher received
with frames as (
    select * from {{ tidemark.event_frames('ddl') }}
),

decoded as (
    select
        frames.*,
        tidemark_ddl(frame) as event
    from frames
),

final as (
    select
        upstream_id,
        file,
        `offset`,
        length,
        event.dispatcher_id,
        event.epoch,
        event.seq,
        event.ddl_type,
        event.schema_name,
        event.table_name,
        event.old_schema_name,
        event.old_table_name,
        event.query,
        event.start_ts,
        event.finished_ts,
        event.is_not_synced,
        event.dropped_table_ids,
        event.dropped_schema_id,
        event.tables,
        event.body,
        {{ tidemark.bad_frame_columns() }},
        batch_id
    from decoded
)

select * from final
