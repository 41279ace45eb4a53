{#
  A view of the frames that the calling model has not handled yet.

  family: the event family wanted (the seed `event_types` lists them); all frames, and corrupt ranges too, when left out.
  payload: 'full', 'transactions' to leave the row chunks in the reader, 'header' to leave all payloads there.
#}
{% macro event_frames(family=none, payload='full') %}
  {%- set segments_table = ref('log_segments') -%}
  {%- if not tidemark.is_built([segments_table]) -%}
    {{ return(segments_table) }}
  {%- endif -%}
  {%- set segments = [] -%}
  {%- for row in run_query(
    'select batch_id, upstream_id, file, segment_start, segment_end, log_size from ' ~ segments_table
    ~ ' where segment_end > segment_start and batch_id > ' ~ tidemark.last_batch()
    ~ ' order by batch_id, upstream_id, file, segment_start'
  ) -%}
    {% do segments.append([row[0] | int, row[1], row[2], row[3] | int, row[4] | int, row[5] | int]) %}
  {%- endfor -%}
  {%- set options = {'segments': tojson(segments), 'payload': payload} -%}
  {%- if family -%}{% do options.update({'family': family}) %}{%- endif -%}
  {{ return(tidemark.source_view('frames_' ~ model.name, 'tidemark_events', options)) }}
{% endmacro %}
