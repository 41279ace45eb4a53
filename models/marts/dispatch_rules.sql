-- one row per dispatch rule in the order in which they are tried, the default last
{{ config(pre_hook='{{ tidemark.provide_seeds() }}') }}

with configured as (
    {{ tidemark.configured_rules() }}
),

defaults as (
    select * from {{ ref('default_dispatch_rules') }}
),

final as (
    select * from configured
    union all
    select
        rule_number,
        array(matcher) as matcher,
        coalesce(topic_expression, '') as topic_expression,
        partition_expression,
        kind,
        cast(array() as array<string>) as columns,
        '' as index_name,
        cast(null as int) as fixed_partition
    from defaults
)

select * from final
