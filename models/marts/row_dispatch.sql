-- one row per row change that is sent: the rule that took it, its topic and its partition
{% set key_text = tidemark.dispatched_text('image', 'key_column') %}

with row_changes as (
    select * from {{ ref('row_policy') }} where policy_op is not null
),

table_dispatch as (
    select * from {{ ref('table_dispatch') }}
),

-- a row is dispatched by its new image, a delete by its old one
images as (
    select
        row_changes.*,
        table_dispatch.rule_number,
        table_dispatch.topic,
        table_dispatch.partition_expression,
        table_dispatch.kind,
        table_dispatch.fixed_partition,
        table_dispatch.dispatch_columns,
        table_dispatch.partition_count,
        case
            when size(table_dispatch.dispatch_columns) > 0
                then from_json(coalesce(row_changes.post, row_changes.pre), 'map<string, string>')
        end as image
    from row_changes
    inner join table_dispatch
        on
            row_changes.upstream_id = table_dispatch.upstream_id
            and row_changes.table_id = table_dispatch.table_id
            and row_changes.table_version = table_dispatch.table_version
            and row_changes.schema_name = table_dispatch.schema_name
            and row_changes.table_name = table_dispatch.table_name
),

-- the name of the table and every key column that is not null: each adds the CRC-32 of its text
hashed as (
    select
        *,
        aggregate(
            dispatch_columns,
            crc32(concat(schema_name, table_name)),
            (hash, key_column) -> hash ^ coalesce(
                if(
                    key_column.is_binary,
                    crc32(concat(encode(key_column.name, 'UTF-8'), encode({{ key_text }}, 'ISO-8859-1'))),
                    crc32(concat(key_column.name, {{ key_text }}))
                ),
                0
            )
        ) as dispatch_hash
    from images
),

final as (
    select
        upstream_id,
        schema_name,
        table_name,
        key,
        commit_ts,
        start_ts,
        physical_table_id,
        seq,
        row_number,
        policy_op as op,
        target_schema_name,
        target_table_name,
        rule_number,
        topic,
        partition_expression,
        cast(
            case
                when kind = 'number' then fixed_partition
                when kind = 'ts' then commit_ts % partition_count
                when kind = 'key' then 0
                when kind = 'columns' and size(dispatch_columns) = 0 then 0
                else dispatch_hash % partition_count
            end as int
        ) as partition,
        partition_count,
        dispatcher_id,
        epoch,
        table_info_version,
        file,
        `offset`,
        batch_id
    from hashed
)

select * from final
