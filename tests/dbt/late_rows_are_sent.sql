-- late transactions that a sink has passed and not sent: `late_rows: skip` has left them out, or the sink has not run since
-- depends_on: {{ ref('sink_storage') }}, {{ ref('sink_kafka') }}, {{ ref('sink_tidb') }} (which may send them)
{{ config(severity='warn') }}

select * from {{ ref('late_transactions') }} where status in ('waiting', 'skipped')
