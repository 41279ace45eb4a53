-- one row per upstream and event type that its logs hold
{{ config(pre_hook='{{ tidemark.provide_seeds() }}') }}

with frames as (
    select * from {{ ref('stg_frames') }}
),

event_types as (
    select * from {{ ref('event_types') }}
),

counted as (
    select
        upstream_id,
        event_type,
        count(*) as frame_count,
        sum(length) as byte_count
    from frames
    where error_reason is null
    group by upstream_id, event_type
),

final as (
    select
        counted.upstream_id,
        counted.event_type,
        event_types.event_name,
        event_types.family,
        counted.frame_count,
        counted.byte_count
    from counted
    inner join event_types on counted.event_type = event_types.event_type
)

select * from final
