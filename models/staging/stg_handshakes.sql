-- one row per handshake: a dispatcher opens an epoch and says what its table looks like
with frames as (
    select * from {{ tidemark.event_frames('handshake') }}
),

decoded as (
    select
        frames.*,
        tidemark_handshake(frame) as event
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
        event.resolved_ts,
        event.`table`,
        {{ tidemark.bad_frame_columns() }},
        batch_id
    from decoded
)

select * from final
