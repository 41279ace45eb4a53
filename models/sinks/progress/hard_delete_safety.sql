-- one row per table: the ts up to which all changefeeds have written it, so that tombstones up to it are no longer needed
{{ config(materialized='view') }}

with progress as (
    select * from {{ ref('progress') }}
),

-- a row change that was not sent may be older than a tombstone
unsent_rows as (
    select * from {{ ref('unsent_rows') }}
),

written as (
    select
        changefeed_id,
        upstream_id,
        database_name,
        table_name,
        checkpoint_ts
    from progress
    union all
    select
        changefeed_id,
        upstream_id,
        target_schema_name as database_name,
        target_table_name as table_name,
        first_unsent_ts - 1 as checkpoint_ts
    from unsent_rows
),

writers as (
    select
        changefeed_id,
        upstream_id,
        database_name,
        table_name,
        min(checkpoint_ts) as checkpoint_ts
    from written
    group by changefeed_id, upstream_id, database_name, table_name
),

final as (
    select
        database_name,
        table_name,
        min(checkpoint_ts) as safe_ts,
        -- the upper bits of a ts are milliseconds
        timestamp_millis(shiftright(min(checkpoint_ts), 18)) as safe_time,
        min_by(changefeed_id, checkpoint_ts) as slowest_changefeed_id,
        min_by(upstream_id, checkpoint_ts) as slowest_upstream_id,
        count(*) as writer_count
    from writers
    group by database_name, table_name
)

select * from final
