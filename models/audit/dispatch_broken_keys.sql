-- one row per key whose changes go to more than one partition, so that a consumer cannot keep them in order
with row_dispatch as (
    select * from {{ ref('row_dispatch') }}
),

final as (
    select
        schema_name,
        table_name,
        key,
        topic,
        sort_array(collect_set(partition)) as partitions,
        count(*) as row_count
    from row_dispatch
    group by schema_name, table_name, key, topic
    having count(distinct partition) > 1
)

select * from final
