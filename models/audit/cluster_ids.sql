-- one row per upstream and cluster id that the heartbeats in its logs carry, and what does not fit
with control_events as (
    select * from {{ ref('stg_control_events') }} where error_reason is null
),

-- 0 says nothing
found as (
    select
        upstream_id,
        get_json_object(fields, '$.cluster_id') as cluster_id,
        count(*) as event_count
    from control_events
    where get_json_object(fields, '$.cluster_id') <> '0'
    group by upstream_id, get_json_object(fields, '$.cluster_id')
),

counted as (
    select
        *,
        count(*) over (partition by upstream_id) as cluster_count,
        count(*) over (partition by cluster_id) as upstream_count
    from found
),

-- an upstream may have any name; one that is a number is the id of its cluster
final as (
    select
        upstream_id,
        cluster_id,
        event_count,
        case
            when upstream_id rlike '^[0-9]+$' and regexp_replace(upstream_id, '^0+', '') <> cluster_id then 'other_cluster'
            when cluster_count > 1 then 'several_clusters'
            when upstream_count > 1 then 'several_upstreams'
        end as problem
    from counted
)

select * from final
