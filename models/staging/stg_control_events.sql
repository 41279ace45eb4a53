-- one row per event that only steers a dispatcher: ready, not reusable, drop, congestion control, heartbeats
with frames as (
    select * from {{ tidemark.event_frames('control') }}
),

decoded as (
    select
        frames.*,
        tidemark_control(frame) as event
    from frames
),

final as (
    select
        upstream_id,
        file,
        `offset`,
        event.event_name,
        event.dispatcher_id,
        event.fields,
        {{ tidemark.bad_frame_columns() }},
        batch_id
    from decoded
)

select * from final
