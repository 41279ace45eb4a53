-- one row per up to 64 row changes of a transaction that go into the storage tree: how a task finds them in the log
-- depends_on: {{ ref('int_transactions') }}, {{ ref('int_checkpoints') }}, {{ ref('int_row_changes') }}
-- depends_on: {{ ref('table_filter') }}
-- depends_on: {{ ref('log_segments') }}, {{ ref('stg_handshakes') }}, {{ ref('stg_ddl_events') }}, {{ ref('sink_checkpoints') }}
{{ config(
    materialized='sink',
    sink_format='tidemark_storage',
    sink_options="{{ tojson(tidemark.storage_sink_options()) }}",
    post_hook="{{ tidemark.note_sink_checkpoint('storage', adapter.storage_report()) }}"
) }}

with decided as (
    select
        *,
        cast(row_number div 64 as int) as block,
        shiftleft(1L, row_number % 64) as row_bit
    from {{ ref('row_policy') }}
    where policy_op is not null and {{ tidemark.sink_range('storage').condition }}
),

-- the numbers are the same in all rows of a transaction
blocks as (
    select
        upstream_id,
        file,
        `offset`,
        seq,
        block,
        target_schema_name,
        target_table_name,
        {% if tidemark.are_tables_split() %}dispatcher_id,{% endif %}
        max(table_info_version) as table_info_version,
        max(table_id) as table_id,
        max(physical_table_id) as physical_table_id,
        max(commit_ts) as commit_ts,
        max(start_ts) as start_ts,
        bit_or(row_bit) as sent_rows,
        bit_or(case when policy_op = 'delete' then row_bit else 0L end) as deleted_rows
    from decided
    group by
        upstream_id,
        file,
        `offset`,
        seq,
        block,
        target_schema_name,
        {% if tidemark.are_tables_split() %}dispatcher_id,{% endif %}
        target_table_name
),

foldered as (
    select
        *,
        struct({{ tidemark.folder_columns() }}) as folder
    from blocks
),

-- one task writes a folder: its files are the same however many tasks there are
final as (
    select /*+ repartition({{ tidemark.folder_tasks() }}, folder) */
        upstream_id,
        file,
        `offset`,
        block,
        sent_rows,
        deleted_rows
    from foldered
    sort by folder, commit_ts, start_ts, physical_table_id, seq, upstream_id, block
)

select * from final
