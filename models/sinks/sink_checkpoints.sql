-- one row per run of a sink that sent or skipped something: everything up to the checkpoint is there; sinks add them when done
{{ config(materialized='appended', full_refresh=false) }}

with final as (
    select
        cast(null as string) as changefeed_id,
        cast(null as string) as sink_uri,
        cast(null as bigint) as previous_checkpoint_ts,
        cast(null as bigint) as checkpoint_ts,
        cast(null as bigint) as row_count,
        cast(null as timestamp) as written_at,
        cast(null as bigint) as file_count,
        cast(null as bigint) as late_row_count,
        cast(null as string) as late_rows,
        cast(null as bigint) as batch_id,
        cast(null as string) as plan_id,
        cast(null as bigint) as log_row_count,
        cast(null as bigint) as empty_delete_count,
        cast(null as string) as sink
    from values (1) as nothing (one)
    where false
)

select * from final
