-- one row per changefeed, upstream and table that is there: up to which ts its rows are written
{{ config(
    materialized='table',
    only_if_changed=true,
    pre_hook="{# after the sinks #}{% do [ref('sink_storage'), ref('sink_kafka'), ref('sink_tidb')] %}"
) }}

{% set changefeed_id = tidemark.text_literal(tidemark.changefeed_id()) %}

with tables as (
    select * from {{ ref('tables_at_checkpoint') }}
),

-- what this model held before; other changefeeds may write to it, too
previous as (
    {% if tidemark.is_built([this]) %}
        select * from {{ this }}
    {% else %}
        select
            cast(null as string) as changefeed_id,
            cast(null as string) as upstream_id,
            cast(null as string) as database_name,
            cast(null as string) as table_name,
            cast(null as bigint) as checkpoint_ts
        from values (1) as nothing (one)
        where false
    {% endif %}
),

-- a checkpoint never moves back, unless it turns out that it has passed a row change which was not sent
this_changefeed as (
    select
        {{ changefeed_id }} as changefeed_id,
        tables.upstream_id,
        tables.target_schema_name as database_name,
        tables.target_table_name as table_name,
        least(
            greatest(tables.checkpoint_ts, previous.checkpoint_ts), tables.first_unsent_ts - 1
        ) as checkpoint_ts
    from tables
    left join previous
        on
            tables.upstream_id = previous.upstream_id
            and tables.target_schema_name = previous.database_name
            and tables.target_table_name = previous.table_name
            and previous.changefeed_id = {{ changefeed_id }}
    where tables.gone_ts is null
),

-- what other changefeeds have written, and what this one has written to another sink
kept as (
    select previous.*
    from previous
    left anti join tables
        on
            previous.upstream_id = tables.upstream_id
            and previous.database_name = tables.target_schema_name
            and previous.table_name = tables.target_table_name
            and previous.changefeed_id = {{ changefeed_id }}
),

final as (
    select * from this_changefeed
    union all
    select * from kept
)

select * from final
