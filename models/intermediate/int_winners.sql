-- one row per key and batch: the write to it that won among those the batch completed
-- depends_on: {{ ref('log_segments') }} (which batches there are)
with writes as (
    select * from {{ ref('row_policy') }}
    where policy_op is not null and batch_id > {{ tidemark.last_batch() }}
),

-- the later version wins; on a tie the one applied later, in an order that does not depend on how rows arrived
ordered as (
    select
        schema_name,
        table_name,
        key,
        batch_id,
        struct(version_ts, commit_ts, upstream_id, start_ts, seq, row_number) as write_order,
        struct(
            upstream_id,
            version_ts,
            commit_ts,
            table_id,
            physical_table_id,
            table_version,
            coalesce(post, pre) as row_values,
            policy_op = 'delete' or is_soft_deleted as is_deleted
        ) as write
    from writes
),

final as (
    select
        schema_name,
        table_name,
        key,
        max(write_order) as write_order,
        max_by(write, write_order) as write,
        batch_id
    from ordered
    group by schema_name, table_name, key, batch_id
)

select * from final
