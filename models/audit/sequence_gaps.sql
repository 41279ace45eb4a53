-- one row per dispatcher whose events have a gap: which seq is missing, and which came instead
with dispatchers as (
    select * from {{ ref('int_dispatchers') }}
),

final as (
    select
        upstream_id,
        dispatcher_id,
        epoch,
        schema_name,
        table_name,
        last_seq + 1 as expected_seq,
        waiting_seqs[0] as found_seq,
        resolved_ts as held_back_at_ts
    from dispatchers
    where size(waiting_seqs) > 0
)

select * from final
