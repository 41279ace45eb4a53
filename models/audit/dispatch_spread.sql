-- one row per topic and partition that rows go to: how many, and how far the fullest partition of the topic is from the mean
{% set partition_count = tidemark.changefeed_setting('partition_count') or 1 %}

with row_dispatch as (
    select * from {{ ref('row_dispatch') }}
),

counted as (
    select
        topic,
        partition,
        count(*) as row_count,
        count(distinct schema_name, table_name, key) as key_count
    from row_dispatch
    group by topic, partition
),

final as (
    select
        topic,
        partition,
        row_count,
        key_count,
        -- partitions without rows count for the mean
        max(row_count) over (partition by topic) * {{ partition_count }}D / sum(row_count) over (partition by topic) as skew
    from counted
)

select * from final
