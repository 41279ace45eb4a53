-- one row per key of an active-active table and cluster whose row is not the one that all clusters should end with, and why
{% set lag = (var('replication_lag_seconds') * 1000) | int ~ ' * 262144L' %}

with row_policy as (
    select * from {{ ref('row_policy') }} where is_active_active and reason <> 'filtered_table'
),

identities as (
    select * from {{ ref('table_identities') }}
),

table_versions as (
    select * from {{ ref('table_versions') }}
),

checkpoints as (
    select
        upstream_id,
        max(checkpoint_ts) as checkpoint_ts
    from {{ ref('int_checkpoints') }}
    group by upstream_id
),

row_changes as (
    {{ tidemark.with_identities('row_policy', 'identities') }}
),

-- what was written before a drop or truncate is gone without a delete
remaining as (
    select * from row_changes where commit_ts > coalesce(gone_ts, 0)
),

-- what a cluster has of a key in the end, from its own stream: its own writes, and those that reached it by replication
states as (
    select
        schema_name,
        table_name,
        key,
        upstream_id,
        max_by(op = 'delete', struct(commit_ts, start_ts, op <> 'delete', seq, row_number)) as is_hard_deleted,
        max(case when op = 'delete' then commit_ts end) as hard_deleted_ts,
        max_by(
            struct(
                coalesce(origin_ts, commit_ts) as version_ts, origin_ts is null as is_own, is_soft_deleted, post as row_values
            ),
            struct(commit_ts, start_ts, op <> 'delete', seq, row_number)
        ) filter (where op <> 'delete') as last_write
    from remaining
    group by schema_name, table_name, key, upstream_id
),

-- where all clusters should end: with the latest version of the key
expected as (
    select
        schema_name,
        table_name,
        key,
        max_by(
            struct(upstream_id, last_write.version_ts, last_write.is_soft_deleted, last_write.row_values),
            struct(last_write.version_ts, last_write.is_own, upstream_id)
        ) as winner
    from states
    where last_write is not null
    group by schema_name, table_name, key
),

-- what a table held before the log began is not known; one that a statement of the log created held nothing
clusters as (
    select /*+ broadcast(identities, checkpoints) */
        identities.schema_name,
        identities.table_name,
        identities.upstream_id,
        max(checkpoints.checkpoint_ts) as checkpoint_ts,
        min_by(
            if(table_versions.ddl_type in (3, 11, 60), 0, table_versions.valid_from_ts), table_versions.valid_from_ts
        ) as begin_ts
    from table_versions
    inner join identities
        on table_versions.upstream_id = identities.upstream_id and table_versions.table_id = identities.table_id
    inner join checkpoints
        on
            table_versions.upstream_id = checkpoints.upstream_id
            and table_versions.valid_from_ts <= checkpoints.checkpoint_ts
    group by identities.schema_name, identities.table_name, identities.upstream_id
    having
        max(
            table_versions.is_active_active
            and coalesce(table_versions.valid_to_ts > checkpoints.checkpoint_ts, true)
            and identities.gone_ts is null
        )
),

joined as (
    select /*+ broadcast(clusters) */
        expected.schema_name,
        expected.table_name,
        expected.key,
        expected.winner,
        clusters.upstream_id,
        clusters.checkpoint_ts,
        clusters.begin_ts,
        -- a row that was there before the log began, and of which only the removal is known, is taken for a tombstone
        coalesce(states.last_write.version_ts, 0) as version_ts,
        coalesce(states.last_write.is_soft_deleted, true) as is_soft_deleted,
        states.last_write.row_values,
        coalesce(states.is_hard_deleted, false) as is_hard_deleted,
        states.hard_deleted_ts,
        from_json(states.last_write.row_values, 'map<string, string>') as row_map,
        from_json(expected.winner.row_values, 'map<string, string>') as winner_map
    from expected
    inner join clusters on expected.schema_name = clusters.schema_name and expected.table_name = clusters.table_name
    left join states
        on
            expected.schema_name = states.schema_name
            and expected.table_name = states.table_name
            and expected.key = states.key
            and clusters.upstream_id = states.upstream_id
),

compared as (
    select
        *,
        -- clusters change a table one after the other: only columns that both have can differ
        forall(
            map_keys(row_map),
            name -> lower(name) in ('_tidb_origin_ts', '_tidb_commit_ts')
            or not map_contains_key(winner_map, name)
            or row_map[name] <=> winner_map[name]
        ) as has_same_values,
        collect_list(struct(version_ts, checkpoint_ts)) over (partition by schema_name, table_name, key) as all_states
    from joined
),

classified as (
    select
        *,
        case
            -- a row may go for good only after its soft delete has reached every cluster
            when
                is_hard_deleted
                and version_ts > 0
                and (
                    not is_soft_deleted
                    or exists(all_states, other -> other.version_ts < version_ts and other.checkpoint_ts >= hard_deleted_ts)
                )
                then 'premature_hard_delete'
            when version_ts = winner.version_ts and (is_hard_deleted or has_same_values) then null
            when version_ts = winner.version_ts then 'different_values'
            when version_ts = 0 and winner.version_ts <= begin_ts then null
            when checkpoint_ts < winner.version_ts + {{ lag }} then 'lag'
            when winner.is_soft_deleted then 'missing_soft_delete'
            else 'lost_write'
        end as difference
    from compared
),

final as (
    select
        schema_name,
        table_name,
        key,
        upstream_id,
        difference,
        nullif(version_ts, 0) as version_ts,
        case
            when is_hard_deleted then 'hard_deleted'
            when version_ts = 0 then 'missing'
            when is_soft_deleted then 'soft_deleted'
            else 'live'
        end as state,
        winner.upstream_id as expected_upstream_id,
        winner.version_ts as expected_version_ts,
        case when winner.is_soft_deleted then 'soft_deleted' else 'live' end as expected_state,
        row_values as values,
        winner.row_values as expected_values,
        checkpoint_ts
    from classified
    where difference is not null
)

select * from final
