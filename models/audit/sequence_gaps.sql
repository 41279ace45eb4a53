-- one row per epoch of a dispatcher whose events have a gap: which seq is missing, and which came instead
with dispatchers as (
    select * from {{ ref('int_dispatchers') }} where status = 'blocked'
),

gaps as (
    select
        * except (gaps),
        explode(gaps) as gap
    from dispatchers
),

final as (
    select
        upstream_id,
        dispatcher_id,
        gap.epoch,
        schema_name,
        table_name,
        gap.expected_seq,
        gap.found_seq,
        resolved_ts as held_back_at_ts
    from gaps
)

select * from final
