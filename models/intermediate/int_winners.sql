-- one row per key of a physical table, on parquet also per part: the write that won among the new ones and those taken over
-- depends_on: {{ ref('log_segments') }} (which batches there are), {{ ref('int_row_changes') }} (how much is new)
{% set key_columns = ['key', 'table_name', 'schema_name', 'upstream_id', 'physical_table_id'] %}
{{ config(
    rows_from='int_row_changes',
    takes_over=true,
    merged_by=key_columns
) }}
{% set parts_to_take_over = tidemark.parts_to_take_over() %}

with row_policy as (
    select * from {{ ref('row_policy') }}
    -- a build from the beginning also takes the old rows, which have no batch (tidemark clean)
    where policy_op is not null and batch_id > {{ tidemark.last_batch() or -1 }}
),

writes as (
    {{ tidemark.applied_writes('row_policy', key_columns) }}
    {% if parts_to_take_over %}
        union all
        select
            {{ key_columns | join(',\n            ') }},
            write_order,
            write
        from {{ tidemark.stored_table(this) }}
        where part in ({{ parts_to_take_over | join(', ') }})
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
        cast({{ tidemark.current_batch() }} as bigint) as batch_id
    from ranked
    where place = 1
)

select * from final
