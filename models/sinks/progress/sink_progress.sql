-- one row per table whose row of the progress table in the database is to be written, or removed because the table is gone
-- depends_on: {{ ref('sink_tidb') }}, {{ ref('sink_checkpoints') }}
{{ config(
    materialized='sink',
    sink_format='tidemark_progress',
    sink_options="{{ tojson(tidemark.progress_sink_options()) }}",
    post_hook="{{ tidemark.note_progress_update() }}"
) }}

with tables as (
    select * from {{ ref('tables_at_checkpoint') }}
),

-- what was gone by the last update is removed already
final as (
    select
        upstream_id,
        target_schema_name as schema_name,
        target_table_name as table_name,
        checkpoint_ts,
        gone_ts is not null as is_gone
    from tables
    where gone_ts is null or gone_ts > {{ tidemark.noted_position('progress').checkpoint_ts }}
)

select * from final
