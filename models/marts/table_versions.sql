-- one row per version of a table of an upstream: what it looked like, since when, and which statement made it so
{#- a table: most models behind it ask for it, and planning it again for each of them takes longer than building it -#}
{{ config(materialized='table', only_if_changed=true) }}

with handshakes as (
    select * from {{ ref('stg_handshakes') }} where error_reason is null
),

ddl_events as (
    select * from {{ ref('stg_ddl_events') }} where error_reason is null
),

states as (
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

-- a state arrives with its statement, once per dispatcher, and with the handshakes that begin there; the statement tells more;
-- a name that a statement uses only in passing, to swap two others, comes without an id
tellings as (
    select
        *,
        row_number() over (
            partition by upstream_id, `table`.table_id, finished_ts
            order by ddl_type is null, `table`.table_version desc
        ) as telling
    from states
    where `table`.table_id > 0
),

compared as (
    select
        *,
        struct(`table`.table_version, `table`.schema_name, `table`.table_name) as state,
        lag(struct(`table`.table_version, `table`.schema_name, `table`.table_name)) over (
            partition by upstream_id, `table`.table_id
            order by finished_ts
        ) as previous_state
    from tellings
    where telling = 1
),

-- every handshake and every statement that mentions a table repeats its state; after `recover table` it is there again
versions as (
    select
        *,
        lead(finished_ts) over (partition by upstream_id, `table`.table_id order by finished_ts) as next_ts
    from compared
    where previous_state is null or state <> previous_state or ddl_type = 25
),

-- drop table, truncate table (which gives it another id), drop view
dropped_tables as (
    select
        upstream_id,
        schema_name,
        table_name,
        collect_set(finished_ts) as dropped_ts
    from ddl_events
    where ddl_type in (4, 11, 24)
    group by upstream_id, schema_name, table_name
),

dropped_schemas as (
    select
        upstream_id,
        schema_name,
        collect_set(finished_ts) as dropped_ts
    from ddl_events
    where ddl_type = 2
    group by upstream_id, schema_name
),

final as (
    select
        versions.upstream_id,
        versions.`table`.table_id,
        versions.`table`.schema_name,
        versions.`table`.table_name,
        versions.`table`.table_version,
        versions.finished_ts as valid_from_ts,
        least(
            versions.next_ts,
            -- a table of which only its end is known was never there
            array_min(filter(dropped_tables.dropped_ts, ts -> ts > versions.finished_ts or versions.ddl_type in (4, 24))),
            array_min(filter(dropped_schemas.dropped_ts, ts -> ts > versions.finished_ts))
        ) as valid_to_ts,
        versions.ddl_type,
        versions.query,
        versions.`table`.is_active_active,
        versions.`table`.is_soft_delete,
        versions.`table`.is_partition,
        versions.`table`.is_view,
        versions.`table`.handle_key,
        versions.`table`.columns,
        versions.`table`.indexes
    from versions
    left join dropped_tables
        on
            versions.upstream_id = dropped_tables.upstream_id
            and versions.`table`.schema_name = dropped_tables.schema_name
            and versions.`table`.table_name = dropped_tables.table_name
    left join dropped_schemas
        on
            versions.upstream_id = dropped_schemas.upstream_id
            and versions.`table`.schema_name = dropped_schemas.schema_name
)

select * from final
