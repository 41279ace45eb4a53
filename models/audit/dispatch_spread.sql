-- one row per topic and partition that rows go to: how many, and how far the fullest partition of the topic is from the mean
with row_dispatch as (
    select * from {{ ref('row_dispatch') }}
),

counted as (
    select
        topic,
        partition,
        max(partition_count) as partition_count,
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
        cast(max(row_count) over (partition by topic) as double) * partition_count
        / sum(row_count) over (partition by topic) as skew
    from counted
)

select * from final
