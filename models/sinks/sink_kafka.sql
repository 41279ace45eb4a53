-- one row per message that goes to Kafka: the decision by which a task finds a row change or a DDL statement in the log
-- depends_on: {{ ref('int_transactions') }}, {{ ref('int_checkpoints') }}, {{ ref('int_row_changes') }}, {{ ref('row_policy') }}
-- depends_on: {{ ref('log_segments') }}, {{ ref('stg_handshakes') }}, {{ ref('stg_ddl_events') }}, {{ ref('sink_checkpoints') }}
-- depends_on: {{ ref('table_filter') }}
-- depends_on: {{ ref('table_dispatch') }}, {{ ref('schema_forecast') }} (what the registry will refuse is known before)
{{ config(
    materialized='sink',
    sink_format='tidemark_kafka',
    sink_options="{{ tojson(tidemark.kafka_sink_options()) }}",
    post_hook="{{ tidemark.note_sink_checkpoint('kafka') }}"
) }}

{% set range = tidemark.sink_range('kafka') %}

with row_dispatch as (
    select * from {{ ref('row_dispatch') }} where {{ range.condition }}
),

statements as (
    {{ tidemark.kafka_statements(range) }}
),

decided as (
    select
        upstream_id,
        file,
        `offset`,
        row_number,
        op as policy_op,
        topic,
        partition,
        commit_ts,
        start_ts,
        physical_table_id,
        seq
    from row_dispatch
    union all
    select
        '' as upstream_id,
        file,
        `offset`,
        row_number,
        'ddl' as policy_op,
        topic,
        partition,
        finished_ts as commit_ts,
        0 as start_ts,
        0 as physical_table_id,
        0 as seq
    from statements
),

-- one task sends a partition; a statement comes after the rows up to its finish ts, and what is late after the range
final as (
    select
        upstream_id,
        file,
        `offset`,
        row_number,
        policy_op,
        topic,
        partition
    from decided
    distribute by topic, partition
    sort by
        topic, partition, commit_ts <= {{ range.after_ts }},
        commit_ts, policy_op = 'ddl', start_ts, upstream_id, physical_table_id, seq, row_number
)

select * from final
