-- one row per write that met another cluster's write of the same key: which of the two won, by which rule, and what differs
with row_policy as (
    select * from {{ ref('row_policy') }} where policy_op is not null
),

identities as (
    select * from {{ ref('table_identities') }}
),

-- whichever name they were written under
writes as (
    {{ tidemark.with_identities('row_policy', 'identities') }}
),

-- the write that holds the key when this one is applied
applied as (
    select
        *,
        coalesce(post, pre) as row_values,
        max(struct({{ tidemark.write_order() }} as write_order, coalesce(post, pre) as row_values)) over (
            partition by schema_name, table_name, key
            order by {{ tidemark.applied_order() }}
            rows between unbounded preceding and 1 preceding
        ) as holder
    from writes
),

conflicts as (
    select
        *,
        holder.write_order.upstream_id as other_upstream_id,
        holder.write_order.version_ts as other_version_ts,
        holder.write_order.commit_ts as other_commit_ts,
        case
            when version_ts > holder.write_order.version_ts then 'newer_version'
            when version_ts = holder.write_order.version_ts then 'tie_applied_later'
            else 'older_version'
        end as rule,
        from_json(row_values, 'map<string, string>') as row_map,
        from_json(holder.row_values, 'map<string, string>') as other_map
    from applied
    -- what clean has left of older batches has batch 0: it meets only what is still there
    where holder.write_order.upstream_id <> upstream_id and not batch_id <=> 0
),

final as (
    select
        schema_name,
        table_name,
        key,
        upstream_id,
        version_ts,
        commit_ts,
        other_upstream_id,
        other_version_ts,
        other_commit_ts,
        case when rule = 'older_version' then 'lost' else 'overwrote' end as outcome,
        case when rule = 'older_version' then other_upstream_id else upstream_id end as winner_upstream_id,
        rule,
        filter(
            array_union(map_keys(row_map), map_keys(other_map)),
            name -> name not in ('_tidb_origin_ts', '_tidb_commit_ts') and not row_map[name] <=> other_map[name]
        ) as differing_columns,
        -- the row that was changed was the other cluster's write, which had arrived by replication
        coalesce(get_json_object(pre, '$._tidb_origin_ts') = cast(other_version_ts as string), false) as had_seen,
        start_ts,
        seq,
        row_number,
        physical_table_id,
        batch_id
    from conflicts
)

select * from final
