-- one row per changefeed, upstream and table that is there: up to which ts its rows are written
{{ config(
    materialized='table',
    pre_hook="{# after the sinks #}{% do [ref('sink_storage'), ref('sink_kafka'), ref('sink_tidb')] %}"
) }}

{% set changefeed_id = tidemark.text_literal(tidemark.changefeed_id()) %}

with tables as (
    select * from {{ ref('tables_at_checkpoint') }} where gone_ts is null
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

-- a checkpoint never moves back
this_changefeed as (
    select
        {{ changefeed_id }} as changefeed_id,
        tables.upstream_id,
        tables.target_schema_name as database_name,
        tables.target_table_name as table_name,
        greatest(tables.checkpoint_ts, previous.checkpoint_ts) as checkpoint_ts
    from tables
    left join previous
        on
            tables.upstream_id = previous.upstream_id
            and tables.target_schema_name = previous.database_name
            and tables.target_table_name = previous.table_name
            and previous.changefeed_id = {{ changefeed_id }}
),

final as (
    select * from this_changefeed
    union all
    select * from previous where changefeed_id <> {{ changefeed_id }}
)

select * from final
