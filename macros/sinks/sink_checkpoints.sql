{# How far a sink is, for the sinks that keep it in the warehouse: the last checkpoint of this changefeed's sink behind this sink URI; 0 before its first run. #}
{% macro sink_checkpoint(sink) %}
  {%- set checkpoints = ref('sink_checkpoints') -%}
  {%- if not tidemark.is_built([checkpoints]) -%}
    {{ return(0) }}
  {%- endif -%}
  {{ return(run_query(
    'select coalesce(max(checkpoint_ts), 0) from ' ~ checkpoints
    ~ ' where ' ~ tidemark.is_own_checkpoint(sink)
  )[0][0] | int) }}
{% endmacro %}


{# Which rows of sink_checkpoints are those of a sink of this changefeed. Two changefeeds may write to one place, other tables each. #}
{% macro is_own_checkpoint(sink) %}
  {{ return(
    'sink = ' ~ tidemark.text_literal(sink) ~ ' and changefeed_id = ' ~ tidemark.text_literal(tidemark.changefeed_id())
    ~ ' and sink_uri = ' ~ tidemark.text_literal(tidemark.changefeed_setting('sink_place'))
  ) }}
{% endmacro %}


{# A row for sink_checkpoints; `row_count` and `file_count` are SQL, `rows` where they are to be asked from: a relation with a condition, or none. #}
{% macro add_checkpoint_sql(sink, previous_checkpoint_ts, checkpoint_ts, row_count, rows=none, file_count='cast(null as bigint)') %}
  {{ return(
    'insert into ' ~ tidemark.stored_table(ref('sink_checkpoints')) ~ ' partition (sink)'
    ~ ' select ' ~ tidemark.text_literal(tidemark.changefeed_id()) ~ ' as changefeed_id, '
    ~ tidemark.text_literal(tidemark.changefeed_setting('sink_place')) ~ ' as sink_uri, '
    ~ previous_checkpoint_ts ~ ' as previous_checkpoint_ts, ' ~ checkpoint_ts ~ ' as checkpoint_ts, '
    ~ row_count ~ ' as row_count, current_timestamp() as written_at, '
    ~ file_count ~ ' as file_count, ' ~ tidemark.text_literal(sink) ~ ' as sink'
    ~ (' from ' ~ rows if rows else '')
  ) }}
{% endmacro %}


{#
  Post-hook of a sink: everything up to its range's end is there.

  report: what the sink has counted itself (after_ts, up_to_ts, rows, files), where it does. The rows of a run that ended before this hook are in the range, but not in the report.
#}
{% macro note_sink_checkpoint(sink, report=none) %}
  {%- set decided = ref('row_policy') -%}
  {%- set range = tidemark.sink_range(tidemark.sink_checkpoint(sink)) -%}
  {%- if range.up_to_ts <= range.after_ts -%}
    {{ return('') }}
  {%- endif -%}
  {%- if report and report.after_ts == range.after_ts and report.up_to_ts == range.up_to_ts -%}
    {{ return(tidemark.add_checkpoint_sql(sink, range.after_ts, range.up_to_ts, report.rows, file_count=report.files)) }}
  {%- endif -%}
  {{ return(tidemark.add_checkpoint_sql(
    sink, range.after_ts, range.up_to_ts, 'count(*)', decided ~ ' where policy_op is not null and ' ~ range.condition
  )) }}
{% endmacro %}
