-- one row per row change that is written to the database: the decision by which a task finds it in the log
-- depends_on: {{ ref('int_transactions') }}, {{ ref('int_checkpoints') }}, {{ ref('int_row_changes') }}
-- depends_on: {{ ref('table_filter') }}
-- depends_on: {{ ref('log_segments') }}, {{ ref('stg_handshakes') }}, {{ ref('stg_ddl_events') }}, {{ ref('sink_checkpoints') }}
{{ config(
    materialized='sink',
    sink_format='tidemark_mysql',
    sink_options="{{ tojson(tidemark.tidb_sink_options()) }}",
    post_hook="{{ tidemark.note_sink_checkpoint('tidb') }}"
) }}

{% set range = tidemark.sink_range('tidb') %}
{% set row_columns = ['target_schema_name', 'target_table_name', 'key', 'file', '`offset`', 'row_number'] %}

with row_policy as (
    select * from {{ ref('row_policy') }} where policy_op is not null
),

{% if range.late.decision == 'send' and not tidemark.is_active_active_mode() %}
    writes as (
        {{ tidemark.applied_writes('row_policy', row_columns + ['commit_ts', 'batch_id']) }}
    ),

    late_writes as (
        select * from writes where {{ range.late_condition }}
    ),

    newest_writes as (
        select
            target_schema_name,
            target_table_name,
            key,
            max_by(struct(file, `offset`, row_number), write_order) as place
        from writes
        left semi join late_writes using (target_schema_name, target_table_name, key)
        where commit_ts <= {{ range.up_to_ts }} and batch_id <= {{ range.up_to_batch }}
        group by target_schema_name, target_table_name, key
    ),

    -- an update that changes the key writes two keys: each counts as long as nothing newer was written under it
    late_rows as (
        select
            row_policy.* except (policy_op),
            case
                when row_policy.old_key is null or under_key.key is not null and under_old_key.key is not null
                    then row_policy.policy_op
                when under_key.key is not null then 'insert'
                else 'delete'
            end as policy_op
        from row_policy
        left join newest_writes as under_key
            on
                row_policy.target_schema_name = under_key.target_schema_name
                and row_policy.target_table_name = under_key.target_table_name
                and row_policy.key = under_key.key
                and struct(row_policy.file, row_policy.`offset`, row_policy.row_number) = under_key.place
        left join newest_writes as under_old_key
            on
                row_policy.target_schema_name = under_old_key.target_schema_name
                and row_policy.target_table_name = under_old_key.target_table_name
                and row_policy.old_key = under_old_key.key
                and struct(row_policy.file, row_policy.`offset`, row_policy.row_number) = under_old_key.place
        where {{ range.late_condition }} and (under_key.key is not null or under_old_key.key is not null)
    ),

    decided as (
        select * except (policy_op), policy_op from row_policy where {{ range.in_range }}
        union all
        select * from late_rows
    ),
{% else %}
    -- upserts of an active-active table decide by themselves which write is newer
    decided as (
        select * from row_policy where {{ range.condition }}
    ),
{% endif %}

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
