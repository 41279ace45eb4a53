-- one row per key of a table: the write that won, over all upstreams and batches; deleted rows stay as tombstones
-- depends_on: {{ ref('sync_points') }}, {{ ref('stg_handshakes') }} (which ts a snapshot can have)
{{ config(
    materialized=var('current_rows_as'),
    only_if_changed=['int_winners', 'table_identities'] if var('as_of_ts') is none else false,
    tblproperties={'tidemark.as_of_ts': var('as_of_ts') | string}
) }}
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

identities as (
    {{ tidemark.shown_tables(as_of_ts) }}
),

written as (
    select
        *,
        write.table_id
    from winners
),

identified as (
    {{ tidemark.with_identities('written', 'identities') }}
),

-- a renamed table takes its rows along; one that is dropped or truncated, by itself or with its database, loses them
remaining as (
    select * from identified
    where write_order.commit_ts > coalesce(gone_ts, 0)
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
