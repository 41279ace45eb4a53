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
  {%- if tidemark.sink_checkpoint('tidb') <= tidemark.sink_checkpoint('progress') -%}
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
  {{ return(tidemark.add_checkpoint_sql(
    'progress', tidemark.sink_checkpoint('progress'), tidemark.sink_checkpoint('tidb'),
    'count(*)', ref('tables_at_checkpoint') ~ ' where gone_ts is null'
  )) }}
{% endmacro %}
