-- one row per frame or range of bytes that could not be read
{% set decoders = [
    'stg_transactions', 'stg_ddl_events', 'stg_resolved_events', 'stg_handshakes', 'stg_sync_points', 'stg_control_events', 'int_row_changes'
] %}

with frames as (
    select * from {{ ref('stg_frames') }}
),

undecoded as (
    {% for decoder in decoders %}
        select
            file,
            `offset`,
            error_reason,
            error_message,
            error_bytes
        from {{ ref(decoder) }}
        where error_reason is not null
        {{ 'union all' if not loop.last }}
    {% endfor %}
),

final as (
    select
        frames.upstream_id,
        frames.file,
        frames.`offset`,
        frames.length,
        frames.event_type,
        frames.version,
        coalesce(frames.error_reason, undecoded.error_reason) as reason,
        undecoded.error_message as message,
        coalesce(frames.error_bytes, undecoded.error_bytes) as bytes,
        frames.batch_id
    from frames
    left join undecoded on frames.file = undecoded.file and frames.`offset` = undecoded.`offset`
    where frames.error_reason is not null or undecoded.error_reason is not null
)

select * from final
