-- one row per replicated table that an upstream had by the checkpoint of the sink: how far it is written, and if it is there
-- depends_on: {{ ref('sink_checkpoints') }} (with a sink)
{% set place = tidemark.changefeed_setting('sink_place') %}

with upstream_checkpoints as (
    select
        upstream_id,
        max(checkpoint_ts) as checkpoint_ts
    from {{ ref('int_checkpoints') }}
    group by upstream_id
),

{% if place %}
    sink_checkpoints as (
        select max(checkpoint_ts) as checkpoint_ts from {{ ref('sink_checkpoints') }}
        where
            sink_uri = {{ tidemark.text_literal(place) }}
            and changefeed_id = {{ tidemark.text_literal(tidemark.changefeed_id()) }}
            and sink <> 'progress'
    ),
{% endif %}

table_versions as (
    select * from {{ ref('table_versions') }} where not is_view
),

replicated_tables as (
    select * from {{ ref('table_filter') }} where is_replicated
),

unsent_rows as (
    select * from {{ ref('unsent_rows') }} where changefeed_id = {{ tidemark.text_literal(tidemark.changefeed_id()) }}
),

name_changes as (
    select
        upstream_id,
        finished_ts,
        from_json(
            get_json_object(body, '$.table_name_change'),
            'DropName array<struct<SchemaName: string, TableName: string>>, DropDatabaseName string'
        ) as dropped
    from {{ ref('stg_ddl_events') }}
    where error_reason is null
),

-- without a sink, rows are written when they are in the warehouse
reached as (
    select
        upstream_checkpoints.upstream_id,
        {% if place %}
            least(upstream_checkpoints.checkpoint_ts, sink_checkpoints.checkpoint_ts) as checkpoint_ts
        {% else %}
            upstream_checkpoints.checkpoint_ts
        {% endif %}
    from upstream_checkpoints
    {% if place %}
        inner join sink_checkpoints on sink_checkpoints.checkpoint_ts is not null
    {% endif %}
),

appeared as (
    select
        reached.upstream_id,
        table_versions.schema_name,
        table_versions.table_name,
        any_value(
            {{ tidemark.routed('replicated_tables.target_schema_name', 'table_versions.schema_name') }}
        ) as target_schema_name,
        any_value(
            {{ tidemark.routed('replicated_tables.target_table_name', 'table_versions.table_name') }}
        ) as target_table_name,
        reached.checkpoint_ts,
        max(table_versions.valid_from_ts) as appeared_ts
    from reached
    inner join table_versions
        on
            reached.upstream_id = table_versions.upstream_id
            and reached.checkpoint_ts >= table_versions.valid_from_ts
    inner join replicated_tables
        on
            table_versions.schema_name = replicated_tables.schema_name
            and table_versions.table_name = replicated_tables.table_name
    group by reached.upstream_id, table_versions.schema_name, table_versions.table_name, reached.checkpoint_ts
),

dropped_names as (
    select upstream_id, finished_ts, explode(dropped.dropname) as dropped_name from name_changes
),

drops as (
    select upstream_id, finished_ts, dropped_name.schemaname as schema_name, dropped_name.tablename as table_name
    from dropped_names
    union all
    select upstream_id, finished_ts, dropped.dropdatabasename as schema_name, null as table_name
    from name_changes
    where dropped.dropdatabasename <> ''
),

-- a name that a statement drops and adds, as when two tables change names, is there
still_there as (
    select
        appeared.upstream_id,
        appeared.schema_name,
        appeared.table_name,
        appeared.target_schema_name,
        appeared.target_table_name,
        appeared.checkpoint_ts,
        appeared.appeared_ts,
        max(drops.finished_ts) as gone_ts
    from appeared
    left join drops
        on
            appeared.upstream_id = drops.upstream_id
            and appeared.schema_name = drops.schema_name
            and appeared.table_name = coalesce(drops.table_name, appeared.table_name)
            and appeared.appeared_ts < drops.finished_ts
            and appeared.checkpoint_ts >= drops.finished_ts
    group by
        appeared.upstream_id,
        appeared.schema_name,
        appeared.table_name,
        appeared.target_schema_name,
        appeared.target_table_name,
        appeared.checkpoint_ts,
        appeared.appeared_ts
),

-- a table is written up to the first row change of it that was not sent
final as (
    select
        still_there.upstream_id,
        still_there.schema_name,
        still_there.table_name,
        still_there.target_schema_name,
        still_there.target_table_name,
        least(still_there.checkpoint_ts, unsent_rows.first_unsent_ts - 1) as checkpoint_ts,
        still_there.appeared_ts,
        still_there.gone_ts,
        unsent_rows.first_unsent_ts
    from still_there
    left join unsent_rows
        on
            still_there.upstream_id = unsent_rows.upstream_id
            and still_there.schema_name = unsent_rows.schema_name
            and still_there.table_name = unsent_rows.table_name
)

select * from final
