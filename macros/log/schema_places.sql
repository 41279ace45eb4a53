{#
  Where the Handshake and DDL frames are that say which table is in force for the rows of some transactions, as the option `schemas` of the readers
  of rows wants it.

  transactions: a subquery of int_transactions.
#}
{% macro schema_places(transactions) %}
  {%- set handshakes, ddl_events = ref('stg_handshakes'), ref('stg_ddl_events') -%}
  {%- set places = [] -%}
  {%- if not tidemark.is_built([handshakes, ddl_events, ref('int_transactions')]) -%}
    {{ return(places) }}
  {%- endif -%}
  {%- for row in run_query(
    'with places as (select upstream_id, dispatcher_id, epoch, seq, file, `offset`, length from ' ~ handshakes ~ ' where error_reason is null'
    ~ ' union all select upstream_id, dispatcher_id, epoch, seq, file, `offset`, length from ' ~ ddl_events ~ ' where error_reason is null)'
    ~ ' select places.* from places left semi join ' ~ transactions ~ ' as transactions using (upstream_id, dispatcher_id, epoch)'
  ) -%}
    {% do places.append([row[0], row[1], row[2] | int, row[3] | int, row[4], row[5] | int, row[6] | int]) %}
  {%- endfor -%}
  {{ return(places) }}
{% endmacro %}


{# The same for the transactions that the calling model has not handled yet. #}
{% macro schemas_of_new_rows() %}
  {{ return(tidemark.schema_places('(select * from ' ~ ref('int_transactions') ~ ' where batch_id > ' ~ tidemark.last_batch() ~ ')')) }}
{% endmacro %}
