-- one row per row change that is written to the database: the decision by which a task finds it in the log
-- depends_on: {{ ref('int_transactions') }}, {{ ref('int_checkpoints') }}, {{ ref('int_row_changes') }}
-- depends_on: {{ ref('stg_handshakes') }}, {{ ref('stg_ddl_events') }}, {{ ref('sink_checkpoints') }}
{{ config(
    materialized='sink',
    sink_format='tidemark_mysql',
    sink_options="{{ tojson(tidemark.tidb_sink_options()) }}",
    post_hook="{{ tidemark.note_sink_checkpoint('tidb') }}"
) }}

with decided as (
    select * from {{ ref('row_policy') }} where policy_op is not null and {{ tidemark.tidb_range().condition }}
),

-- in the order in which current_rows lets a later write win
final as (
    select
        upstream_id,
        file,
        `offset`,
        row_number,
        policy_op
    from decided
    distribute by {{ tidemark.tidb_task_columns() }}
    sort by target_schema_name, target_table_name, {{ tidemark.applied_order() }}
)

select * from final
