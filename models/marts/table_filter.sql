-- one row per table that the logs mention: whether and under which name it is replicated, and which row changes are left out
{{ config(materialized='table', only_if_changed=true) }}

with tables as (
    select distinct schema_name, table_name from {{ ref('table_versions') }}
),

event_filters as (
    {{ tidemark.configured_event_filters() }}
),

judged as (
    select
        tables.*,
        event_filters.ignored_ops,
        event_filters.ignored_columns,
        {{ tidemark.target_of('tables.schema_name', 'tables.table_name') }} as target,
        event_filters.value_filter,
        tidemark_table_matches(
            cast(array({{ tidemark.text_literals(tidemark.changefeed_setting('filter_rules')) }}) as array<string>),
            {{ tidemark.changefeed_setting('case_sensitive') }},
            tables.schema_name,
            tables.table_name
        ) as is_replicated,
        tidemark_table_matches(
            event_filters.matcher,
            {{ tidemark.changefeed_setting('case_sensitive') }},
            tables.schema_name,
            tables.table_name
        ) as is_meant
    from tables
    cross join event_filters
),

final as (
    select
        schema_name,
        table_name,
        any_value(is_replicated) as is_replicated,
        any_value(target.schema_name) as target_schema_name,
        any_value(target.table_name) as target_table_name,
        array_distinct(flatten(collect_list(ignored_ops) filter (where is_meant))) as ignored_ops,
        collect_list(ignored_columns) filter (where is_meant and size(ignored_columns) > 0) as ignored_columns,
        collect_list(value_filter) filter (where is_meant and is_replicated) as value_filters
    from judged
    group by schema_name, table_name
)

select * from final
