-- one row per table version: the dispatch rule that takes it, its topic and name downstream, and what its partition is made from
{{ config(materialized='table', only_if_changed=true) }}

with table_versions as (
    select * from {{ ref('table_versions') }} where not is_view
),

rules as (
    select * from {{ ref('dispatch_rules') }}
),

table_filter as (
    select * from {{ ref('table_filter') }}
),

candidates as (
    select
        table_versions.*,
        struct(rules.*) as rule,
        tidemark_table_matches(
            rules.matcher,
            {{ tidemark.changefeed_setting('case_sensitive') }} or rules.rule_number = 2147483647,
            table_versions.schema_name,
            table_versions.table_name
        ) as is_taken
    from table_versions
    cross join rules
),

-- the first rule that takes a table wins
chosen as (
    select
        upstream_id,
        table_id,
        schema_name,
        table_name,
        table_version,
        any_value(columns) as columns,
        any_value(handle_key) as handle_key,
        any_value(indexes) as indexes,
        min_by(rule, rule.rule_number) as rule
    from candidates
    where is_taken
    group by upstream_id, table_id, schema_name, table_name, table_version
),

named as (
    select
        *,
        case
            when rule.kind = 'columns' then rule.columns
            when rule.kind = 'index-value' and rule.index_name = '' then handle_key
            when rule.kind = 'index-value'
                then coalesce(
                    filter(indexes, index -> lower(index.name) = lower(rule.index_name))[0].columns,
                    raise_error(
                        concat(
                            'table ', schema_name, '.', table_name,
                            ' has no index ', rule.index_name, ', which a dispatch rule names'
                        )
                    )
                )
            else cast(array() as array<string>)
        end as wanted_columns
    from chosen
),

-- names are matched without regard to case and hashed as the table has them
found as (
    select
        *,
        flatten(
            transform(
                wanted_columns,
                wanted -> transform(
                    filter(columns, item -> lower(item.name) = lower(wanted) and not item.is_virtual_generated),
                    item -> struct(
                        item.name,
                        item.charset = 'binary' and item.type_name rlike 'binary|blob' as is_binary,
                        if(item.type_name = 'timestamp', {{ tidemark.time_zone_of('upstream_id') }}, null) as time_zone
                    )
                )
            )
        ) as dispatch_columns
    from named
),

final as (
    select
        found.upstream_id,
        found.table_id,
        schema_name,
        table_name,
        found.table_version,
        nullif(rule.rule_number, 2147483647) as rule_number,
        rule.partition_expression,
        rule.kind,
        rule.fixed_partition,
        {% if tidemark.changefeed_setting('dispatch_skips_missing_columns') %}
            found.dispatch_columns,
        {% else %}
            if(
                rule.kind <> 'columns' or size(found.dispatch_columns) = size(found.wanted_columns),
                found.dispatch_columns,
                raise_error(
                    concat(
                        'table ', schema_name, '.', table_name,
                        ' lacks a column that its dispatch rule names: ', array_join(found.wanted_columns, ', ')
                    )
                )
            ) as dispatch_columns,
        {% endif %}
        tidemark_topic(
            rule.topic_expression,
            '{{ tidemark.changefeed_setting('sink_kind') }}',
            '{{ tidemark.changefeed_setting('protocol') }}',
            '{{ tidemark.changefeed_setting('default_topic') }}',
            schema_name,
            table_name
        ) as topic,
        table_filter.target_schema_name,
        table_filter.target_table_name,
        {{ tidemark.partition_count() }} as partition_count
    from found
    inner join table_filter using (schema_name, table_name)
)

select * from final
