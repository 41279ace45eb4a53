-- one row per key of a physical table, on parquet also per batch: the write that won among the new ones and those taken over
-- depends_on: {{ ref('log_segments') }} (which batches there are), {{ ref('int_row_changes') }} (how large the new batch is)
{% set key_columns = ['key', 'table_name', 'schema_name', 'upstream_id', 'physical_table_id'] %}
{{ config(
    rows_from='int_row_changes',
    file_format=var('table_format'),
    partition_by='batch_id' if var('table_format') == 'parquet' else none,
    unique_key=key_columns if var('table_format') == 'delta' else none,
    matched_condition='DBT_INTERNAL_SOURCE.write_order > DBT_INTERNAL_DEST.write_order',
    post_hook="{{ tidemark.drop_merged_batches() }}"
) }}
{% set merged_batches = tidemark.batches_to_merge() %}

with row_policy as (
    select * from {{ ref('row_policy') }}
    where policy_op is not null and batch_id > {{ tidemark.last_batch() }}
),

writes as (
    {{ tidemark.applied_writes('row_policy', key_columns) }}
    {% if merged_batches %}
        union all
        select
            {{ key_columns | join(',\n            ') }},
            write_order,
            write
        from {{ this }}
        where batch_id in ({{ merged_batches | join(', ') }})
    {% endif %}
),

-- per physical table, so that one that is dropped takes along only what was written to it;
-- the hash comes first, since sorting looks at the rest only where it is the same
ranked as (
    select
        *,
        row_number() over (
            partition by xxhash64({{ key_columns | join(', ') }}), {{ key_columns | join(', ') }}
            order by write_order desc
        ) as place
    from writes
),

final as (
    select
        {{ key_columns | join(',\n        ') }},
        write_order,
        write,
        cast({{ (merged_batches + [tidemark.current_batch()]) | min }} as bigint) as from_batch,
        cast({{ tidemark.current_batch() }} as bigint) as batch_id
    from ranked
    where place = 1
)

select * from final
