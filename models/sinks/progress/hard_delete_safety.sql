-- one row per table: the ts up to which all changefeeds have written it, so that tombstones up to it are no longer needed
{{ config(materialized='view') }}

with progress as (
    select * from {{ ref('progress') }}
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
    from progress
    group by database_name, table_name
)

select * from final
