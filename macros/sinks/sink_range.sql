{#
  What a sink has to send now: the row changes with after_ts < commit_ts <= up_to_ts, of all upstreams.

  after_ts: how far the sink is. up_to_ts: the smallest checkpoint over the upstreams, of the last batch whose row changes are all there; not above after_ts
  when there is nothing to send. condition: the same in SQL for row_policy, row_dispatch and int_transactions, with the batches that can hold such rows, so that others are not read.
  handled_batch: the batch with which the sink came as far as it is; none where that is not known.
#}
{% macro sink_range(after_ts) %}
  {%- set checkpoints, row_changes = ref('int_checkpoints'), ref('int_row_changes') -%}
  {%- set range = {'after_ts': after_ts, 'up_to_ts': after_ts, 'condition': 'false', 'handled_batch': none} -%}
  {%- if not tidemark.is_built([checkpoints, row_changes]) -%}
    {{ return(range) }}
  {%- endif -%}
  {%- set found = run_query(
    'with known as (select * from ' ~ checkpoints ~ ' where batch_id <= ' ~ tidemark.last_batch_of(row_changes) ~ ')'
    ~ ' select (select min(checkpoint_ts) from known where batch_id = (select max(batch_id) from known)),'
    ~ ' (select min(batch_id) from known where checkpoint_ts > ' ~ after_ts ~ '),'
    ~ ' (select min(batch_id) from (select batch_id, min(checkpoint_ts) as checkpoint_ts from known group by batch_id) where checkpoint_ts >= ' ~ after_ts ~ ')'
  )[0] -%}
  {% do range.update({'handled_batch': found[2]}) %}
  {%- if found[0] is not none and found[0] | int > after_ts -%}
    {% do range.update({
      'up_to_ts': found[0] | int,
      'condition': 'batch_id >= ' ~ found[1] ~ ' and commit_ts > ' ~ after_ts ~ ' and commit_ts <= ' ~ found[0]
    }) %}
  {%- endif -%}
  {{ return(range) }}
{% endmacro %}


{#
  Say which transactions a sink will not send although they are new: their commit ts is one that it is past already. They came late, or are the history of an upstream that was added.
  late_transactions lists them.
#}
{% macro warn_of_late_transactions(range) %}
  {%- if range.after_ts == 0 or range.handled_batch is none -%}
    {{ return('') }}
  {%- endif -%}
  {%- for row in run_query(
    'select upstream_id, count(*), sum(row_count) from ' ~ ref('int_transactions')
    ~ ' where batch_id > ' ~ range.handled_batch ~ ' and commit_ts <= ' ~ range.after_ts ~ ' group by upstream_id order by upstream_id'
  ) -%}
    {% do exceptions.warn(
      model.name ~ ' is past commit ts ' ~ range.after_ts ~ ' and does not send what came since from before that: ' ~ row[1] ~ ' transactions (' ~ row[2]
      ~ " row changes) of upstream '" ~ row[0] ~ "', see late_transactions. Where they are needed, send everything to a new place:"
      ~ (' another prefix' if tidemark.is_storage_sink() else ' with another changefeed_id')
    ) %}
  {%- endfor -%}
{% endmacro %}


{# The places of the tables in force for the rows of a range, for the option `schemas` of a sink. #}
{% macro sink_schemas(range) %}
  {{ return(tidemark.schema_places('(select * from ' ~ ref('int_transactions') ~ ' where ' ~ range.condition ~ ')')) }}
{% endmacro %}


{# Where the DDL statements of a range are in the logs, each once (every dispatcher of a table receives it), by finish ts: [file, offset, length]. #}
{% macro sink_ddl_places(range) %}
  {%- set places = [] -%}
  {%- for row in run_query(
    'with received as (select *, row_number() over (partition by finished_ts, ddl_type, query order by upstream_id, file, `offset`) as copy'
    ~ ' from ' ~ ref('stg_ddl_events') ~ ' where error_reason is null and not is_not_synced'
    ~ ' and finished_ts > ' ~ range.after_ts ~ ' and finished_ts <= ' ~ range.up_to_ts ~ ')'
    ~ ' select file, `offset`, length from received where copy = 1 order by finished_ts, upstream_id, file, `offset`'
  ) -%}
    {% do places.append([row[0], row[1] | int, row[2] | int]) %}
  {%- endfor -%}
  {{ return(places) }}
{% endmacro %}
