-- one row per key of a table: the write that won, over all upstreams and batches; deleted rows stay as tombstones
-- depends_on: {{ ref('sync_points') }}, {{ ref('stg_handshakes') }} (which ts a snapshot can have)
{{ config(tblproperties={'tidemark.as_of_ts': var('as_of_ts') | string}) }}
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
        {{ tidemark.applied_writes('writes', ['schema_name', 'table_name', 'key', 'upstream_id', 'physical_table_id']) }}
    ),
{% endif %}

table_versions as (
    select * from {{ ref('table_versions') }}
),

ddl_events as (
    select * from {{ ref('stg_ddl_events') }} where error_reason is null
),

-- statements count as far as rows do, also where a run ended before it had chosen the winners
shown as (
    select
        upstream_id,
        {{ 'max(checkpoint_ts)' if as_of_ts is none else as_of_ts ~ 'L' }} as shown_ts
    from {{ ref('int_checkpoints') }}
    {% if as_of_ts is none %}
        where batch_id <= {{ tidemark.shown_batch() }}
    {% endif %}
    group by upstream_id
),

-- a renamed table takes its rows along; one that is dropped or truncated, by itself or with its database, loses them
tables as (
    select
        table_versions.upstream_id,
        table_versions.table_id,
        max_by(table_versions.schema_name, table_versions.valid_from_ts) as schema_name,
        max_by(table_versions.table_name, table_versions.valid_from_ts) as table_name,
        max_by(
            case when table_versions.valid_to_ts <= shown.shown_ts then table_versions.valid_to_ts end,
            table_versions.valid_from_ts
        ) as gone_ts
    from table_versions
    inner join shown
        on table_versions.upstream_id = shown.upstream_id and table_versions.valid_from_ts <= shown.shown_ts
    group by table_versions.upstream_id, table_versions.table_id
),

-- exchange partition: a plain table, whose table info stands last, becomes a partition, and a partition becomes a plain table;
-- partition by, remove partitioning: the table gets another id
moves as (
    select
        ddl_events.*,
        explode(
            if(
                ddl_events.ddl_type = 42,
                from_json(get_json_object(ddl_events.body, '$.blocked_tables.TableIDs'), 'array<bigint>'),
                ddl_events.dropped_table_ids
            )
        ) as physical_table_id
    from ddl_events
    inner join shown on ddl_events.upstream_id = shown.upstream_id and ddl_events.finished_ts <= shown.shown_ts
    where ddl_events.ddl_type in (42, 71, 72)
),

owners as (
    select
        upstream_id,
        physical_table_id,
        max_by(
            case
                when ddl_type <> 42 then tables[0].table_id
                when physical_table_id = element_at(tables, -1).table_id
                    then filter(tables, item -> item.is_partition)[0].table_id
                else physical_table_id
            end,
            finished_ts
        ) as table_id
    from moves
    group by upstream_id, physical_table_id
),

-- drop partition and truncate partition take rows away; other statements that end a partition move its rows to another one
partition_drops as (
    select
        ddl_events.upstream_id,
        ddl_events.finished_ts,
        explode(ddl_events.dropped_table_ids) as physical_table_id
    from ddl_events
    inner join shown on ddl_events.upstream_id = shown.upstream_id and ddl_events.finished_ts <= shown.shown_ts
    where ddl_events.ddl_type in (20, 23)
),

dropped_partitions as (
    select
        upstream_id,
        physical_table_id,
        max(finished_ts) as dropped_ts
    from partition_drops
    group by upstream_id, physical_table_id
),

remaining as (
    select
        coalesce(tables.schema_name, winners.schema_name) as schema_name,
        coalesce(tables.table_name, winners.table_name) as table_name,
        winners.key,
        winners.upstream_id,
        winners.write_order,
        winners.write
    from winners
    left join owners
        on
            winners.upstream_id = owners.upstream_id
            and winners.physical_table_id = owners.physical_table_id
    left join tables
        on
            winners.upstream_id = tables.upstream_id
            and coalesce(owners.table_id, winners.write.table_id) = tables.table_id
    left join dropped_partitions
        on
            winners.upstream_id = dropped_partitions.upstream_id
            and winners.physical_table_id = dropped_partitions.physical_table_id
    where winners.write_order.commit_ts > coalesce(greatest(tables.gone_ts, dropped_partitions.dropped_ts), 0)
),

latest as (
    select
        schema_name,
        table_name,
        key,
        max(struct(write_order, upstream_id, write)) as winner
    from remaining
    -- the key first: sorting compares the others only where it is the same
    group by key, table_name, schema_name
),

final as (
    select
        schema_name,
        table_name,
        key,
        winner.write.row_values as values,
        winner.write_order.version_ts as origin_ts,
        winner.write.is_deleted,
        winner.upstream_id,
        winner.write_order.commit_ts,
        winner.write.table_id,
        winner.write.table_version
    from latest
)

select * from final
