-- one row per table and pair of clusters that wrote the same keys: how many writes won, lost, or knew nothing of the other
with conflicts as (
    select * from {{ ref('conflict_ledger') }}
),

final as (
    select
        schema_name,
        table_name,
        upstream_id,
        other_upstream_id,
        count(*) as conflict_count,
        count_if(outcome = 'overwrote') as overwrote_count,
        count_if(outcome = 'lost') as lost_count,
        count_if(rule = 'tie_applied_later') as tie_count,
        count_if(not had_seen) as unseen_count,
        count(distinct key) as key_count
    from conflicts
    group by schema_name, table_name, upstream_id, other_upstream_id
)

select * from final
