-- one row per key and batch: the write that won among those of the batch, and of the earlier batches that it takes over
-- depends_on: {{ ref('log_segments') }} (which batches there are), {{ ref('int_row_changes') }} (how many rows are new)
{{ config(post_hook="{{ tidemark.drop_merged_batches() }}") }}
{% set merged_batches = tidemark.batches_to_merge() %}

with writes as (
    select * from {{ ref('row_policy') }}
    where policy_op is not null and batch_id > {{ tidemark.last_batch() }}
),

ordered as (
    select
        schema_name,
        table_name,
        key,
        batch_id,
        batch_id as from_batch,
        {{ tidemark.write_order() }} as write_order,
        {{ tidemark.kept_write() }} as write
    from writes
    {% if merged_batches %}
        union all
        select
            schema_name,
            table_name,
            key,
            cast({{ tidemark.current_batch() }} as bigint) as batch_id,
            from_batch,
            write_order,
            write
        from {{ this }}
        where batch_id in ({{ merged_batches | join(', ') }})
    {% endif %}
),

-- the first field decides
winners as (
    select
        schema_name,
        table_name,
        key,
        max(struct(write_order, write)) as winner,
        min(from_batch) as from_batch,
        batch_id
    from ordered
    group by schema_name, table_name, key, batch_id
),

final as (
    select
        schema_name,
        table_name,
        key,
        winner.write_order,
        winner.write,
        from_batch,
        batch_id
    from winners
)

select * from final
