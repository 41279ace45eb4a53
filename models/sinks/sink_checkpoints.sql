-- one row per run of a sink that sent something: everything up to the checkpoint is there; the sinks add their rows when they are done
{{ config(materialized='incremental', partition_by='sink', full_refresh=false, on_schema_change='fail') }}

{% set columns = {
    'changefeed_id': 'string',
    'sink_uri': 'string',
    'previous_checkpoint_ts': 'bigint',
    'checkpoint_ts': 'bigint',
    'row_count': 'bigint',
    'written_at': 'timestamp',
    'sink': 'string'
} %}

with final as (
    select
        {%- for name, type in columns.items() %}
        cast(null as {{ type }}) as {{ name }}{{ ',' if not loop.last }}
        {%- endfor %}
    from values (1) as nothing (one)
    where false
)

select * from final
