{# A view of the row changes of the transactions that int_transactions completed and the calling model has not handled yet. #}
{% macro row_changes() %}
  {%- set segments_table, transactions = ref('log_segments'), ref('int_transactions') -%}
  {%- set wanted = '(select * from ' ~ transactions ~ ' where batch_id > ' ~ tidemark.last_batch() ~ ')' -%}
  {%- set schemas = tidemark.schema_places(wanted) -%}
  {%- if not tidemark.is_built([segments_table, transactions]) -%}
    {{ return(transactions) }}
  {%- endif -%}
  {%- set segments, after_ts, up_to_ts = [], {}, {} -%}
  {%- for row in run_query(
    'select distinct s.batch_id, s.upstream_id, s.file, s.segment_start, s.segment_end, s.log_size from ' ~ segments_table ~ ' as s'
    ~ ' inner join ' ~ wanted ~ ' as t on s.file = t.file and t.`offset` >= s.segment_start and t.`offset` < s.segment_end'
    ~ ' order by 1, 2, 3, 4'
  ) -%}
    {% do segments.append([row[0] | int, row[1], row[2], row[3] | int, row[4] | int, row[5] | int]) %}
  {%- endfor -%}
  {%- for row in run_query('select upstream_id, min(commit_ts) - 1, max(commit_ts) from ' ~ wanted ~ ' as t group by upstream_id') -%}
    {% do after_ts.update({row[0]: row[1] | int}) %}
    {% do up_to_ts.update({row[0]: row[2] | int}) %}
  {%- endfor -%}
  {{ return(tidemark.source_view(
    'row_changes',
    'tidemark_row_changes',
    {'segments': tojson(segments), 'schemas': tojson(schemas), 'after_ts': tojson(after_ts), 'up_to_ts': tojson(up_to_ts)}
  )) }}
{% endmacro %}
