-- one row per row change that goes into the storage tree: the decision by which a task finds it in the log
-- depends_on: {{ ref('int_transactions') }}, {{ ref('stg_handshakes') }}, {{ ref('stg_ddl_events') }}, {{ ref('stg_frames') }}
{{ config(
    materialized='sink',
    sink_format='tidemark_storage',
    sink_options="{{ tojson(tidemark.storage_sink_options()) }}",
    post_hook="{{ tidemark.note_sink_checkpoint('storage') }}"
) }}

with decided as (
    select * from {{ ref('row_policy') }} where policy_op is not null and {{ tidemark.storage_range().condition }}
),

-- one task writes a folder: its files are the same however many tasks there are
final as (
    select
        upstream_id,
        file,
        `offset`,
        row_number,
        policy_op
    from decided
    distribute by {{ tidemark.folder_columns() }}
    sort by {{ tidemark.folder_columns() }}, commit_ts, start_ts, physical_table_id, seq, upstream_id, row_number
)

select * from final
