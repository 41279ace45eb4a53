-- one row per frame or range of bytes that could not be read
with frames as (
    select * from {{ ref('stg_frames') }}
),

final as (
    select
        upstream_id,
        file,
        `offset`,
        length,
        event_type,
        version,
        error_reason as reason,
        error_bytes as bytes,
        batch_id
    from frames
    where error_reason is not null
)

select * from final
