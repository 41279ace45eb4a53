{#
  A view of the frames that the calling model has not handled yet.

  event_types: numbers of the types wanted; all types, and corrupt ranges too, when left out.
  payload: 'full', or 'header' to leave the payloads in the reader.
#}
{% macro event_frames(event_types=[], payload='full') %}
  {%- set segments_table = ref('log_segments') -%}
  {%- if not execute -%}
    {{ return('event_frames') }}
  {%- endif -%}
  {%- set segments = [] -%}
  {%- for row in run_query(
    'select batch_id, upstream_id, file, segment_start, segment_end, log_size from ' ~ segments_table
    ~ ' where segment_end > segment_start and batch_id > ' ~ tidemark.last_batch()
    ~ ' order by batch_id, upstream_id, file, segment_start'
  ) -%}
    {% do segments.append([row[0] | int, row[1], row[2], row[3] | int, row[4] | int, row[5] | int]) %}
  {%- endfor -%}
  {{ return(tidemark.source_view(
    'frames_' ~ model.name,
    'tidemark_events',
    {'segments': tojson(segments), 'event_types': event_types | join(','), 'payload': payload}
  )) }}
{% endmacro %}
