{#
  Where the Handshake and DDL frames are that say which table is in force for the rows of some transactions, as the option `schemas` of the readers
  of rows wants it.

  transactions: a subquery of int_transactions.
#}
{% macro schema_places(transactions) %}
  {%- set handshakes, ddl_events, frames = ref('stg_handshakes'), ref('stg_ddl_events'), ref('stg_frames') -%}
  {%- set places = [] -%}
  {%- if not tidemark.is_built([handshakes, ddl_events, frames, ref('int_transactions')]) -%}
    {{ return(places) }}
  {%- endif -%}
  {%- for row in run_query(
    'with dispatchers as (select distinct upstream_id, dispatcher_id, epoch from ' ~ transactions ~ ' as t),'
    ~ ' places as (select upstream_id, dispatcher_id, epoch, seq, file, `offset` from ' ~ handshakes ~ ' where error_reason is null'
    ~ ' union all select upstream_id, dispatcher_id, epoch, seq, file, `offset` from ' ~ ddl_events ~ ' where error_reason is null)'
    ~ ' select p.upstream_id, p.dispatcher_id, p.epoch, p.seq, f.file, f.`offset`, f.length from places as p'
    ~ ' inner join dispatchers using (upstream_id, dispatcher_id, epoch)'
    ~ ' inner join ' ~ frames ~ ' as f on p.file = f.file and p.`offset` = f.`offset`'
  ) -%}
    {% do places.append([row[0], row[1], row[2] | int, row[3] | int, row[4], row[5] | int, row[6] | int]) %}
  {%- endfor -%}
  {{ return(places) }}
{% endmacro %}


{# The same for the transactions that the calling model has not handled yet. #}
{% macro schemas_of_new_rows() %}
  {{ return(tidemark.schema_places('(select * from ' ~ ref('int_transactions') ~ ' where batch_id > ' ~ tidemark.last_batch() ~ ')')) }}
{% endmacro %}
