{#
  What the sink of this run has to send now, worked out once per run of its model. Two sets of row changes, of all upstreams:

    the range    after_ts < commit_ts <= up_to_ts. up_to_ts is the smallest checkpoint over the upstreams, after the last batch whose row changes are all there.
    late rows    commit_ts <= after_ts, of batches that came after the last one that the sink has handled. See late_rows.sql for what becomes of them.

  after_ts, after_batch, noted_ts   where the sink is, and up to where sink_checkpoints knows it (sink_position)
  up_to_ts, up_to_batch, plan_id    where it is afterwards
  log_row_count                     row changes of the logs that it has handled by then, also those that the changefeed leaves out
  has_rows                          whether there is anything to send
  is_adopted                        the position is not of this log plan, and is taken over into it
  late                              the late rows, and what becomes of them
  condition                         which rows of row_policy, row_dispatch and int_transactions are sent; it names batches, so that others are not read
  in_range, late_condition          the two parts of it; the second also where late rows are not sent
  empty_delete_count                Avro deletes of it that say nothing, once warn_of_empty_deletes has counted them
#}
{% macro sink_range(sink) %}
  {%- set known = adapter.remembered('range of ' ~ sink) if execute and target.type == 'tidemark' -%}
  {%- if known -%}
    {{ return(known) }}
  {%- endif -%}
  {%- set range = {
    'after_ts': 0, 'up_to_ts': 0, 'after_batch': 0, 'up_to_batch': 0, 'noted_ts': 0, 'is_adopted': false,
    'has_rows': false, 'condition': 'false', 'in_range': 'false', 'late_condition': 'false', 'late': {'decision': none}
  } -%}
  {%- set checkpoints, row_changes = ref('int_checkpoints'), ref('int_row_changes') -%}
  {%- if not execute or tidemark.chosen_sink() != sink or not tidemark.is_built([checkpoints, row_changes]) -%}
    {{ return(range) }}
  {%- endif -%}
  {%- set position, last_batch = tidemark.sink_position(sink), tidemark.last_batch_of(row_changes) -%}
  {%- set after_ts = position.checkpoint_ts -%}
  {%- set found = run_query(
    'with known as (select * from ' ~ checkpoints ~ ' where batch_id <= ' ~ last_batch ~ ')'
    ~ ' select (select min(checkpoint_ts) from known where batch_id = (select max(batch_id) from known)),'
    ~ ' (select min(batch_id) from known where checkpoint_ts > ' ~ after_ts ~ ')'
  )[0] -%}
  {%- set up_to_ts = [after_ts, (found[0] or 0) | int] | max -%}
  {%- set in_range = 'batch_id between ' ~ found[1] ~ ' and ' ~ last_batch ~ ' and commit_ts > ' ~ after_ts ~ ' and commit_ts <= ' ~ up_to_ts
    if up_to_ts > after_ts else 'false' -%}
  {% do range.update({
    'after_ts': after_ts,
    'up_to_ts': up_to_ts,
    'up_to_batch': last_batch,
    'plan_id': tidemark.log_plan_id(),
    'noted_ts': position.noted_ts
  }) %}
  {% do range.update(tidemark.handled_batches(position, range)) %}
  {% do range.update({
    'late_condition': 'batch_id > ' ~ range.after_batch ~ ' and batch_id <= ' ~ last_batch ~ ' and commit_ts <= ' ~ after_ts
      if after_ts > 0 and last_batch > range.after_batch else 'false'
  }) %}
  {%- set counted = run_query(
    'select coalesce(sum(row_count), 0), count_if(commit_ts <= ' ~ after_ts ~ '), (select count(*) from ' ~ ref('stg_ddl_events')
    ~ ' where ' ~ range.late_condition | replace('commit_ts', 'finished_ts') ~ ') from ' ~ ref('int_transactions')
    ~ ' where (' ~ in_range ~ ') or (' ~ range.late_condition ~ ')'
  )[0] -%}
  {%- set late = tidemark.late_rows(sink, range) if counted[1] or counted[2] else {'decision': none} -%}
  {% do range.update({
    'late': late,
    'in_range': in_range,
    'log_row_count': range.handled_rows + counted[0] | int,
    'has_rows': up_to_ts > after_ts or late.decision == 'send',
    'condition': '(' ~ in_range ~ ' or ' ~ range.late_condition ~ ')' if late.decision == 'send' else in_range
  }) %}
  {{ return(adapter.remember('range of ' ~ sink, range)) }}
{% endmacro %}


{# Which sink model the sink URI is for; none without one. #}
{% macro chosen_sink() %}
  {%- if tidemark.is_storage_sink() -%}
    {{ return('storage') }}
  {%- elif tidemark.is_kafka_sink() -%}
    {{ return('kafka') }}
  {%- elif tidemark.is_tidb_sink() -%}
    {{ return('tidb') }}
  {%- endif -%}
  {{ return(none) }}
{% endmacro %}


{# Names the numbering of batches: a rebuild from the logs numbers them anew. #}
{% macro log_plan_id() %}
  {%- set kept = tidemark.kept(ref('log_segments')) -%}
  {{ return(kept.built if kept is not none else '') }}
{% endmacro %}


{#
  Where a sink is: the checkpoint, the last batch of a log plan that it has handled, and how many row changes of the logs that was (each none where it is not known); also up to where
  sink_checkpoints knows of it. The tree itself is the truth for a storage sink, and ahead of sink_checkpoints where a run ended before it could note what it had published. A tree does not
  name the log plan, so that it is the same whoever writes it: its batch is one of this plan if as many row changes lie up to it. What was left out on purpose is noted in
  sink_checkpoints only.
#}
{% macro sink_position(sink) %}
  {%- set noted = tidemark.noted_position(sink) -%}
  {%- set position = dict(noted, noted_ts=noted.checkpoint_ts) -%}
  {%- if sink != 'storage' -%}
    {{ return(position) }}
  {%- endif -%}
  {%- set tree = adapter.storage_position() -%}
  {%- if tree.checkpoint_ts != noted.checkpoint_ts or tree.batch_id is not none and noted.batch_id is not none and tree.batch_id > noted.batch_id -%}
    {%- set is_of_this_plan = tree.batch_id is not none and tidemark.log_rows_up_to(tree.batch_id, tree.checkpoint_ts) == tree.log_row_count -%}
    {% do position.update(dict(tree, plan_id=tidemark.log_plan_id() if is_of_this_plan else none)) %}
  {%- endif -%}
  {{ return(position) }}
{% endmacro %}


{#
  Which batches the sink has handled, by its position. After a rebuild from the logs, and on a tree that somebody else has written, batches have other numbers. All of them count as
  handled if they hold as many row changes up to the checkpoint as the sink has handled, or if nobody has counted. Otherwise logs came or went meanwhile, and which rows the sink
  has nobody can tell: all are late.
#}
{% macro handled_batches(position, range) %}
  {%- if range.after_ts == 0 -%}
    {{ return({'after_batch': range.up_to_batch, 'handled_rows': 0, 'is_adopted': false, 'is_unknown': false}) }}
  {%- elif position.plan_id == range.plan_id -%}
    {{ return({'after_batch': position.batch_id, 'handled_rows': position.log_row_count, 'is_adopted': false, 'is_unknown': false}) }}
  {%- endif -%}
  {%- set rows = tidemark.log_rows_up_to(range.up_to_batch, range.after_ts) -%}
  {%- set is_unknown = position.log_row_count is not none and position.log_row_count != rows -%}
  {{ return({
    'after_batch': 0 if is_unknown else range.up_to_batch,
    'handled_rows': 0 if is_unknown else rows,
    'is_adopted': true,
    'is_unknown': is_unknown
  }) }}
{% endmacro %}


{# How many row changes the logs hold up to a batch and a commit ts. #}
{% macro log_rows_up_to(batch_id, commit_ts) %}
  {{ return(run_query(
    'select coalesce(sum(row_count), 0) from ' ~ ref('int_transactions') ~ ' where batch_id <= ' ~ batch_id ~ ' and commit_ts <= ' ~ commit_ts
  )[0][0] | int) }}
{% endmacro %}


{#
  Called by a sink when it runs: refuses late rows or warns of them, and notes a position that nothing is sent from. Whether there is something to send.
#}
{% macro begin_range(sink) %}
  {%- set range = tidemark.sink_range(sink) -%}
  {% do tidemark.refuse_removed_rows(sink, range) %}
  {% do tidemark.judge_late_rows(sink, range) %}
  {%- set has_news = range.is_adopted or range.noted_ts < range.after_ts or range.late.decision in ('skip', 'left_out') -%}
  {%- if not range.has_rows and has_news -%}
    {% do tidemark.note_sink_checkpoint(sink) %}
  {%- endif -%}
  {{ return(range.has_rows) }}
{% endmacro %}


{# The places of the tables in force for the rows of a range, for the option `schemas` of a sink. #}
{% macro sink_schemas(range) %}
  {{ return(tidemark.schema_places('(select * from ' ~ ref('int_transactions') ~ ' where ' ~ range.condition ~ ')')) }}
{% endmacro %}


{#
  Where the DDL statements of a range are in the logs, each once (every dispatcher of a table receives it), by finish ts: [file, offset, length].
#}
{% macro sink_ddl_places(range) %}
  {%- set places = [] -%}
  {%- for row in run_query(
    'select file, `offset`, length from (' ~ tidemark.ddl_statements(range, range.late.decision == 'send') ~ ')'
    ~ ' order by finished_ts, upstream_id, file, `offset`'
  ) -%}
    {% do places.append([row[0], row[1] | int, row[2] | int]) %}
  {%- endfor -%}
  {{ return(places) }}
{% endmacro %}


{# The DDL statements of a range, and the late ones if they are asked for. A statement is late when every copy of it is. #}
{% macro ddl_statements(range, with_late) %}
  {%- set copies = 'partition by finished_ts, ddl_type, query' -%}
  {{ return(
    'select * from (select *, row_number() over (' ~ copies ~ ' order by upstream_id, file, `offset`) as copy,'
    ~ ' min(batch_id) over (' ~ copies ~ ') as first_batch from ' ~ ref('stg_ddl_events')
    ~ ' where error_reason is null and not is_not_synced and batch_id <= ' ~ range.up_to_batch ~ ' and finished_ts <= ' ~ range.up_to_ts
    ~ ('' if with_late else ' and finished_ts > ' ~ range.after_ts) ~ ')'
    ~ ' where copy = 1 and (finished_ts > ' ~ range.after_ts ~ ' or first_batch > ' ~ range.after_batch ~ ')'
  ) }}
{% endmacro %}
