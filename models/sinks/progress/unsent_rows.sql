-- one row per changefeed, upstream and table with row changes that its sink has passed without sending them
with late_transactions as (
    select * from {{ ref('late_transactions') }} where status in ('waiting', 'skipped')
),

sink_checkpoints as (
    select * from {{ ref('sink_checkpoints') }} where sink <> 'progress'
),

handshakes as (
    select * from {{ ref('stg_handshakes') }} where error_reason is null
),

table_versions as (
    select * from {{ ref('table_versions') }}
),

replicated_tables as (
    select * from {{ ref('table_filter') }} where is_replicated
),

-- a changefeed that was given another sink URI sends everything there
places as (
    select
        changefeed_id,
        max_by(sink_uri, written_at) as sink_uri
    from sink_checkpoints
    group by changefeed_id
),

unsent as (
    select
        late_transactions.changefeed_id,
        late_transactions.upstream_id,
        late_transactions.dispatcher_id,
        min(late_transactions.commit_ts) as first_unsent_ts
    from late_transactions
    inner join places
        on late_transactions.changefeed_id = places.changefeed_id and late_transactions.sink_uri = places.sink_uri
    group by late_transactions.changefeed_id, late_transactions.upstream_id, late_transactions.dispatcher_id
),

dispatchers as (
    select distinct
        upstream_id,
        dispatcher_id,
        `table`.table_id
    from handshakes
),

-- under every name that the table has had
final as (
    select
        unsent.changefeed_id,
        unsent.upstream_id,
        table_versions.schema_name,
        table_versions.table_name,
        any_value(
            {{ tidemark.routed('replicated_tables.target_schema_name', 'table_versions.schema_name') }}
        ) as target_schema_name,
        any_value(
            {{ tidemark.routed('replicated_tables.target_table_name', 'table_versions.table_name') }}
        ) as target_table_name,
        min(unsent.first_unsent_ts) as first_unsent_ts
    from unsent
    inner join dispatchers
        on unsent.upstream_id = dispatchers.upstream_id and unsent.dispatcher_id = dispatchers.dispatcher_id
    inner join table_versions
        on dispatchers.upstream_id = table_versions.upstream_id and dispatchers.table_id = table_versions.table_id
    inner join replicated_tables
        on
            table_versions.schema_name = replicated_tables.schema_name
            and table_versions.table_name = replicated_tables.table_name
    group by unsent.changefeed_id, unsent.upstream_id, table_versions.schema_name, table_versions.table_name
)

select * from final
