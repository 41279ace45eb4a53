{# How far a sink is, for the sinks that keep it in the warehouse: the last checkpoint of the sink behind this sink URI; 0 before its first run. #}
{% macro sink_checkpoint(sink) %}
  {%- set checkpoints = ref('sink_checkpoints') -%}
  {%- if not tidemark.is_built([checkpoints]) -%}
    {{ return(0) }}
  {%- endif -%}
  {{ return(run_query(
    'select coalesce(max(checkpoint_ts), 0) from ' ~ checkpoints
    ~ ' where sink = ' ~ tidemark.text_literal(sink) ~ ' and sink_uri = ' ~ tidemark.text_literal(tidemark.changefeed_setting('sink_place'))
  )[0][0] | int) }}
{% endmacro %}


{# Post-hook of a sink: everything up to its range's end is there. #}
{% macro note_sink_checkpoint(sink) %}
  {%- set checkpoints, decided = ref('sink_checkpoints'), ref('row_policy') -%}
  {%- set range = tidemark.sink_range(tidemark.sink_checkpoint(sink)) -%}
  {%- if range.up_to_ts <= range.after_ts -%}
    {{ return('') }}
  {%- endif -%}
  {{ return(
    'insert into ' ~ tidemark.stored_table(checkpoints) ~ ' partition (sink)'
    ~ ' select ' ~ tidemark.text_literal(tidemark.changefeed_setting('sink_place')) ~ ' as sink_uri, '
    ~ range.after_ts ~ ' as previous_checkpoint_ts, ' ~ range.up_to_ts ~ ' as checkpoint_ts,'
    ~ ' count(*) as row_count, current_timestamp() as written_at, ' ~ tidemark.text_literal(sink) ~ ' as sink'
    ~ ' from ' ~ decided ~ ' where policy_op is not null and ' ~ range.condition
  ) }}
{% endmacro %}
