-- one row per sync point that a dispatcher received
with frames as (
    select * from {{ tidemark.event_frames('syncpoint') }}
),

decoded as (
    select
        frames.*,
        tidemark_sync_point(frame) as event
    from frames
),

final as (
    select
        upstream_id,
        file,
        `offset`,
        event.dispatcher_id,
        event.epoch,
        event.seq,
        event.commit_ts,
        {{ tidemark.bad_frame_columns() }},
        batch_id
    from decoded
)

select * from final
