{# A view of the row changes of the transactions that int_transactions completed and the calling model has not handled yet. #}
{% macro row_changes() %}
  {%- set segments_table, transactions = ref('log_segments'), ref('int_transactions') -%}
  {%- set handshakes, ddl_events, frames = ref('stg_handshakes'), ref('stg_ddl_events'), ref('stg_frames') -%}
  {%- if not tidemark.is_built([segments_table, transactions, handshakes, ddl_events, frames]) -%}
    {{ return(transactions) }}
  {%- endif -%}
  {%- set wanted = '(select * from ' ~ transactions ~ ' where batch_id > ' ~ tidemark.last_batch() ~ ')' -%}
  {%- set segments, schemas, after_ts, up_to_ts = [], [], {}, {} -%}
  {%- for row in run_query(
    'select distinct s.batch_id, s.upstream_id, s.file, s.segment_start, s.segment_end, s.log_size from ' ~ segments_table ~ ' as s'
    ~ ' inner join ' ~ wanted ~ ' as t on s.file = t.file and t.`offset` >= s.segment_start and t.`offset` < s.segment_end'
    ~ ' order by 1, 2, 3, 4'
  ) -%}
    {% do segments.append([row[0] | int, row[1], row[2], row[3] | int, row[4] | int, row[5] | int]) %}
  {%- endfor -%}
  {%- for row in run_query(
    'with dispatchers as (select distinct upstream_id, dispatcher_id, epoch from ' ~ wanted ~ ' as t),'
    ~ ' places as (select upstream_id, dispatcher_id, epoch, seq, file, `offset` from ' ~ handshakes ~ ' where error_reason is null'
    ~ ' union all select upstream_id, dispatcher_id, epoch, seq, file, `offset` from ' ~ ddl_events ~ ' where error_reason is null)'
    ~ ' select p.upstream_id, p.dispatcher_id, p.epoch, p.seq, f.file, f.`offset`, f.length from places as p'
    ~ ' inner join dispatchers using (upstream_id, dispatcher_id, epoch)'
    ~ ' inner join ' ~ frames ~ ' as f on p.file = f.file and p.`offset` = f.`offset`'
  ) -%}
    {% do schemas.append([row[0], row[1], row[2] | int, row[3] | int, row[4], row[5] | int, row[6] | int]) %}
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
