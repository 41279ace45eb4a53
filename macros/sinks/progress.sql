{# The name of the changefeed, in the progress table and for the checkpoints of its sinks. A macro of its own, so that a unit test can set it. #}
{% macro changefeed_id() %}
  {{ return(var('changefeed_id')) }}
{% endmacro %}


{#
  Options of the writer of the progress table, rendered when it runs. None when it is not due: it is written in active-active mode, when the sink has moved, and not
  more often than the changefeed's interval, also when runs are short: the time of the last update is in sink_checkpoints.
#}
{% macro progress_sink_options() %}
  {%- if not tidemark.is_tidb_sink() or not tidemark.is_active_active_mode() -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set written, told = tidemark.noted_position('tidb'), tidemark.noted_position('progress') -%}
  {#- late rows move the batch, and may be those of tables that have no row yet -#}
  {%- if written.checkpoint_ts <= told.checkpoint_ts and written.batch_id == told.batch_id and written.plan_id == told.plan_id -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set seconds = run_query(
    'select timestampdiff(second, max(written_at), current_timestamp()) from ' ~ ref('sink_checkpoints')
    ~ ' where ' ~ tidemark.is_own_checkpoint('progress')
  )[0][0] -%}
  {%- if seconds is not none and seconds | int < tidemark.changefeed_setting('progress_interval_seconds') -%}
    {{ return(none) }}
  {%- endif -%}
  {{ return({'settings': adapter.sink_settings(), 'changefeed_id': tidemark.changefeed_id()}) }}
{% endmacro %}


{# Post-hook of the writer of the progress table: when it was written, and up to which checkpoint. #}
{% macro note_progress_update() %}
  {%- set written = tidemark.noted_position('tidb') -%}
  {% do tidemark.add_rows(ref('sink_checkpoints'), tidemark.checkpoint_row(
    'progress',
    {
      'previous_checkpoint_ts': tidemark.noted_position('progress').checkpoint_ts,
      'checkpoint_ts': written.checkpoint_ts,
      'row_count': 'count(*)',
      'batch_id': written.batch_id,
      'plan_id': tidemark.text_literal(written.plan_id)
    },
    ref('tables_at_checkpoint') ~ ' where gone_ts is null'
  )) %}
{% endmacro %}
