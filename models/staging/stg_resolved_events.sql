-- one row per resolved event, also those inside a batch
with frames as (
    select * from {{ tidemark.event_frames('resolved') }}
),

decoded as (
    select
        frames.*,
        tidemark_resolved(frame) as event
    from frames
),

final as (
    select
        upstream_id,
        file,
        `offset`,
        resolved.dispatcher_id,
        resolved.epoch,
        resolved.seq,
        resolved.resolved_ts,
        {{ tidemark.bad_frame_columns() }},
        batch_id
    from decoded
        lateral view outer explode(event.resolved) exploded as resolved
)

select * from final
