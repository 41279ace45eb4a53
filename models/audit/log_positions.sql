-- one row per log file: how far it has been read, and what waits at its end
with segments as (
    select * from {{ ref('log_segments') }}
),

final as (
    select
        upstream_id,
        file,
        max(segment_end) as read_up_to,
        max(log_size) as log_size,
        max_by(torn_bytes, struct(batch_id, segment_end)) as torn_bytes,
        sum(frame_count) as frame_count,
        sum(skipped_bytes) as skipped_bytes,
        max(batch_id) as batch_id
    from segments
    group by upstream_id, file
)

select * from final
