{#
  Where sink_checkpoints says that a sink of this changefeed is: checkpoint_ts (0 before its first run), and the last batch of a log plan that it has handled, with the number of row
  changes of the logs up to there (none where a row does not say).
#}
{% macro noted_position(sink) %}
  {%- set checkpoints = ref('sink_checkpoints') -%}
  {%- set nothing = {'checkpoint_ts': 0, 'batch_id': none, 'plan_id': none, 'log_row_count': none} -%}
  {%- if not tidemark.is_built([checkpoints]) -%}
    {{ return(nothing) }}
  {%- endif -%}
  {%- for row in run_query(
    'select checkpoint_ts, batch_id, plan_id, log_row_count from ' ~ checkpoints ~ ' where ' ~ tidemark.is_own_checkpoint(sink)
    ~ ' order by checkpoint_ts desc, written_at desc limit 1'
  ) -%}
    {{ return({
      'checkpoint_ts': row[0] | int,
      'batch_id': row[1] | int if row[1] is not none else none,
      'plan_id': row[2],
      'log_row_count': row[3] | int if row[3] is not none else none
    }) }}
  {%- endfor -%}
  {{ return(nothing) }}
{% endmacro %}


{# Which rows of sink_checkpoints are those of a sink of this changefeed. Two changefeeds may write to one place, other tables each. #}
{% macro is_own_checkpoint(sink) %}
  {{ return(
    'sink = ' ~ tidemark.text_literal(sink) ~ ' and changefeed_id = ' ~ tidemark.text_literal(tidemark.changefeed_id())
    ~ ' and sink_uri = ' ~ tidemark.text_literal(tidemark.changefeed_setting('sink_place'))
  ) }}
{% endmacro %}


{#
  A row for sink_checkpoints, as a select statement.

  values: SQL of its columns by name; those that are not named are null.
  rows: where they are to be asked from: a relation with a condition, or none.
#}
{% macro checkpoint_row(sink, values, rows=none) %}
  {%- set types = {
    'previous_checkpoint_ts': 'bigint', 'checkpoint_ts': 'bigint', 'row_count': 'bigint', 'written_at': 'timestamp', 'file_count': 'bigint',
    'late_row_count': 'bigint', 'late_rows': 'string', 'batch_id': 'bigint', 'plan_id': 'string', 'log_row_count': 'bigint', 'empty_delete_count': 'bigint'
  } -%}
  {%- set columns = [
    tidemark.text_literal(tidemark.changefeed_id()) ~ ' as changefeed_id', tidemark.text_literal(tidemark.changefeed_setting('sink_place')) ~ ' as sink_uri'
  ] -%}
  {%- for name, type in types.items() -%}
    {% do columns.append('cast(' ~ values.get(name, 'current_timestamp()' if name == 'written_at' else 'null') ~ ' as ' ~ type ~ ') as ' ~ name) %}
  {%- endfor -%}
  {% do columns.append(tidemark.text_literal(sink) ~ ' as sink') %}
  {{ return('select ' ~ columns | join(', ') ~ (' from ' ~ rows if rows else '')) }}
{% endmacro %}


{# Post-hook of a sink: everything up to the end of its range is there. `report`: see sink_checkpoint_row. #}
{% macro note_sink_checkpoint(sink, report=none) %}
  {% do tidemark.add_rows(ref('sink_checkpoints'), tidemark.sink_checkpoint_row(sink, report)) %}
{% endmacro %}


{#
  The row of sink_checkpoints that says so.

  report: what the sink has counted itself (after_ts, up_to_ts, rows, files), where it does. The rows of a run that ended before this hook are not in the report.
#}
{% macro sink_checkpoint_row(sink, report) %}
  {%- set range = tidemark.sink_range(sink) -%}
  {%- set late_rows = range.late.rows if range.late.decision in ('send', 'skip') else 0 -%}
  {%- set values = {
    'previous_checkpoint_ts': range.after_ts if range.is_adopted else range.noted_ts,
    'checkpoint_ts': range.up_to_ts,
    'late_row_count': late_rows,
    'late_rows': tidemark.text_literal(range.late.decision) if range.late.decision else 'null',
    'batch_id': range.up_to_batch,
    'plan_id': tidemark.text_literal(range.plan_id),
    'log_row_count': range.log_row_count,
    'empty_delete_count': range.get('empty_delete_count', 'null')
  } -%}
  {%- set is_noted = range.noted_ts == range.after_ts or range.is_adopted -%}
  {%- if not range.has_rows and is_noted -%}
    {{ return(tidemark.checkpoint_row(sink, dict(values, row_count=0))) }}
  {%- elif report and is_noted and report.after_ts == range.after_ts and report.up_to_ts == range.up_to_ts -%}
    {{ return(tidemark.checkpoint_row(sink, dict(values, row_count=report.rows, file_count=report.files))) }}
  {%- endif -%}
  {%- set condition = range.condition if is_noted else '(' ~ range.condition ~ ' or commit_ts > ' ~ range.noted_ts ~ ' and commit_ts <= ' ~ range.after_ts ~ ')' -%}
  {{ return(tidemark.checkpoint_row(
    sink, dict(values, row_count='count(*)'), ref('row_policy') ~ ' where policy_op is not null and ' ~ condition
  )) }}
{% endmacro %}
