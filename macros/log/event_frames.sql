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
  {%- for segment in tidemark.segments_after(tidemark.last_batch()) if not family or family in segment.families -%}
    {% do segments.append(segment.place) %}
  {%- endfor -%}
  {%- if not segments and target.type == 'tidemark' -%}
    {#- the reader is a Python process, which need not start to find nothing -#}
    {% do adapter.remember('frames of ' ~ model.name, 'none') %}
    {{ return("(select nothing.* from (select from_json(cast(null as string), '" ~ adapter.frame_schema() ~ "') as nothing) where false)") }}
  {%- endif -%}
  {%- set options = {'segments': tojson(segments), 'payload': payload} -%}
  {%- if family -%}{% do options.update({'family': family}) %}{%- endif -%}
  {{ return(tidemark.source_view('frames_' ~ model.name, 'tidemark_events', options)) }}
{% endmacro %}


{# The segments of later batches: `place` is what the option `segments` wants of each, `families` which events it holds. The models of a run mostly ask for the same ones. #}
{% macro segments_after(last_batch) %}
  {%- set name = 'segments after ' ~ last_batch -%}
  {%- set known = adapter.remembered(name) if target.type == 'tidemark' else none -%}
  {%- if known is not none -%}
    {{ return(known) }}
  {%- endif -%}
  {%- set segments = [] -%}
  {%- for row in run_query(
    "select batch_id, upstream_id, file, segment_start, segment_end, log_size, array_join(families, ' ') from " ~ ref('log_segments')
    ~ ' where segment_end > segment_start and batch_id > ' ~ last_batch
    ~ ' order by batch_id, upstream_id, file, segment_start'
  ) -%}
    {% do segments.append({
      'place': [row[0] | int, row[1], row[2], row[3] | int, row[4] | int, row[5] | int],
      'families': row[6].split(' ')
    }) %}
  {%- endfor -%}
  {{ return(adapter.remember(name, segments) if target.type == 'tidemark' else segments) }}
{% endmacro %}
