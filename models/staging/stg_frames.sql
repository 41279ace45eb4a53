-- one row per frame of the logs, and one per range of bytes that belongs to no frame
with pieces as (
    select * from {{ tidemark.event_frames(payload='header') }}
),

headers as (
    select
        pieces.*,
        tidemark_header(frame, length) as header
    from pieces
),

final as (
    select
        upstream_id,
        file,
        `offset`,
        length,
        header.event_type,
        header.version,
        header.payload_length,
        coalesce(skip_reason, header.error) as error_reason,
        case when coalesce(skip_reason, header.error) is not null then frame end as error_bytes,
        batch_id
    from headers
)

select * from final
