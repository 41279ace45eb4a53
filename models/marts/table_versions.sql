-- one row per version of a table of an upstream: what it looked like, since when, and which statement made it so
with handshakes as (
    select * from {{ ref('stg_handshakes') }} where error_reason is null
),

ddl_events as (
    select * from {{ ref('stg_ddl_events') }} where error_reason is null
),

seen_versions as (
    select
        upstream_id,
        explode(tables) as `table`,
        ddl_type,
        query,
        finished_ts
    from ddl_events
    union all
    select
        upstream_id,
        `table`,
        cast(null as int) as ddl_type,
        cast(null as string) as query,
        resolved_ts as finished_ts
    from handshakes
),

-- a version arrives with its statement, with every later event that mentions the table, and with every handshake
first_seen as (
    select
        *,
        row_number() over (
            partition by upstream_id, `table`.table_id, `table`.table_version, `table`.schema_name, `table`.table_name
            order by finished_ts, query nulls last
        ) as appearance
    from seen_versions
),

final as (
    select
        upstream_id,
        `table`.table_id,
        `table`.schema_name,
        `table`.table_name,
        `table`.table_version,
        finished_ts as valid_from_ts,
        lead(finished_ts) over (
            partition by upstream_id, `table`.table_id
            order by finished_ts, `table`.table_version
        ) as valid_to_ts,
        ddl_type,
        query,
        `table`.is_active_active,
        `table`.is_soft_delete,
        `table`.is_partition,
        `table`.is_view,
        `table`.handle_key,
        `table`.columns,
        `table`.indexes
    from first_seen
    where appearance = 1
)

select * from final
