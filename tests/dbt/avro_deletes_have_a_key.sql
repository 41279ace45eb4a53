-- one row per sink whose last run sent Avro deletes that say nothing: their tables have no key, and consumers keep the rows
-- depends_on: {{ ref('sink_storage') }}, {{ ref('sink_kafka') }} (which count them)
{{ config(severity='warn') }}

with runs as (
    select
        *,
        row_number() over (partition by sink, changefeed_id, sink_uri order by written_at desc) as age
    from {{ ref('sink_checkpoints') }}
)

select * from runs where age = 1 and empty_delete_count > 0
