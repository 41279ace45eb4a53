-- one row per Avro schema of a table version: what the schema registry will say to it, and which statement it objects to
{{ config(materialized='table') }}

with table_versions as (
    select * from {{ ref('table_versions') }} where not is_view
),

table_filter as (
    select * from {{ ref('table_filter') }} where is_replicated
),

-- a table that got an old name back needs no other schema
appearances as (
    select
        table_versions.*,
        row_number() over (
            partition by
                table_versions.upstream_id,
                table_versions.table_id,
                table_versions.table_version,
                table_versions.schema_name,
                table_versions.table_name
            order by table_versions.valid_from_ts
        ) as appearance
    from table_versions
    inner join table_filter
        on
            table_versions.schema_name = table_filter.schema_name
            and table_versions.table_name = table_filter.table_name
),

replicated as (
    select * except (appearance) from appearances where appearance = 1
),

-- a registry judges a schema by those before it, so all versions are played in one go, in their order
history as (
    select
        transform(
            array_sort(
                collect_list(struct(valid_from_ts, table_version, upstream_id, table_id, struct(replicated.*) as version))
            ),
            entry -> entry.version
        ) as versions
    from replicated
),

played as (
    select inline(tidemark_schema_forecast({{ tidemark.text_literal(tidemark.sink_settings()) }}, versions))
    from history
),

final as (
    select
        played.*,
        replicated.valid_from_ts,
        replicated.query
    from played
    inner join replicated
        on
            played.upstream_id = replicated.upstream_id
            and played.table_id = replicated.table_id
            and played.table_version = replicated.table_version
            and played.schema_name = replicated.schema_name
            and played.table_name = replicated.table_name
)

select * from final
