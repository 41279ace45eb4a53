-- one row per key of a table: the write that won, over all upstreams and batches; deleted rows stay as tombstones
-- depends_on: {{ ref('sync_points') }}, {{ ref('int_checkpoints') }} (which ts a snapshot can have)
{% set as_of_ts = tidemark.as_of_ts() %}

with
{% if as_of_ts is none %}
    winners as (
        select * from {{ ref('int_winners') }}
    ),
{% else %}
    writes as (
        select * from {{ ref('row_policy') }}
        where policy_op is not null and commit_ts <= {{ as_of_ts }}
    ),

    winners as (
        select
            schema_name,
            table_name,
            key,
            {{ tidemark.write_order() }} as write_order,
            {{ tidemark.kept_write() }} as write
        from writes
    ),
{% endif %}

ddl_events as (
    select * from {{ ref('stg_ddl_events') }}
    where error_reason is null {% if as_of_ts is not none %} and finished_ts <= {{ as_of_ts }}{% endif %}
),

table_versions as (
    select * from {{ ref('table_versions') }}
    {% if as_of_ts is not none %}where valid_from_ts <= {{ as_of_ts }}{% endif %}
),

-- a renamed table takes its rows along
table_names as (
    select
        upstream_id,
        table_id,
        max_by(schema_name, struct(valid_from_ts, table_version)) as schema_name,
        max_by(table_name, struct(valid_from_ts, table_version)) as table_name
    from table_versions
    group by upstream_id, table_id
),

-- a table or partition that is dropped or truncated loses its rows
dropped_tables as (
    select
        upstream_id,
        physical_table_id,
        max(finished_ts) as dropped_ts
    from (select upstream_id, finished_ts, explode(dropped_table_ids) as physical_table_id from ddl_events) as dropped
    group by upstream_id, physical_table_id
),

remaining as (
    select
        coalesce(table_names.schema_name, winners.schema_name) as schema_name,
        coalesce(table_names.table_name, winners.table_name) as table_name,
        winners.key,
        winners.write_order,
        winners.write
    from winners
    left join table_names
        on winners.write.upstream_id = table_names.upstream_id and winners.write.table_id = table_names.table_id
    left join dropped_tables
        on
            winners.write.upstream_id = dropped_tables.upstream_id
            and winners.write.physical_table_id = dropped_tables.physical_table_id
    where dropped_tables.dropped_ts is null or winners.write.commit_ts > dropped_tables.dropped_ts
),

latest as (
    select
        schema_name,
        table_name,
        key,
        max_by(write, write_order) as write
    from remaining
    -- the key first: sorting compares the others only where it is the same
    group by key, table_name, schema_name
),

final as (
    select
        schema_name,
        table_name,
        key,
        write.row_values as values,
        write.version_ts as origin_ts,
        write.is_deleted,
        write.upstream_id,
        write.commit_ts,
        write.table_id,
        write.table_version
    from latest
)

select * from final
