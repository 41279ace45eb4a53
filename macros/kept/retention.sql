{# The last batch of which all row changes are there. A macro of its own, so that a unit test can set it. #}
{% macro handled_batch() %}
  {{ return(tidemark.last_batch_of(ref('int_row_changes'))) }}
{% endmacro %}


{# How a sink is named for a person, from a row of sink_checkpoints. #}
{% macro sink_name() %}
  {{ return("concat(sink, ' ', changefeed_id, ' ', sink_uri)") }}
{% endmacro %}


{#
  Which rows of sink_checkpoints are positions of sinks that still need logs and row changes. The progress table is made from what the others note. The var `retired_sinks` has URIs,
  which retire all that was sent there, and names of single sinks.
#}
{% macro is_counted_sink() %}
  {%- set retired = tidemark.text_literals(var('retired_sinks')) -%}
  {{ return("sink <> 'progress'" ~ (' and sink_uri not in (' ~ retired ~ ') and ' ~ tidemark.sink_name() ~ ' not in (' ~ retired ~ ')' if retired else '')) }}
{% endmacro %}


{# The name of the sink of this changefeed, if it has not run yet and is not retired: it needs everything. A list of none or one. #}
{% macro unstarted_sinks() %}
  {%- set sink = tidemark.chosen_sink() if execute else none -%}
  {%- if not sink -%}
    {{ return([]) }}
  {%- endif -%}
  {%- set uri = tidemark.changefeed_setting('sink_place') -%}
  {%- set name = sink ~ ' ' ~ tidemark.changefeed_id() ~ ' ' ~ uri -%}
  {%- set is_retired = uri in var('retired_sinks') or name in var('retired_sinks') -%}
  {{ return([] if is_retired or tidemark.noted_position(sink).checkpoint_ts else [name]) }}
{% endmacro %}


{# An entry of `retired_sinks` that names no sink would keep everything, and nobody would know why. #}
{% macro check_retired_sinks() %}
  {%- set known = [] -%}
  {%- for row in run_query('select distinct sink_uri, ' ~ tidemark.sink_name() ~ ' from ' ~ ref('sink_checkpoints') ~ " where sink <> 'progress' order by 2") -%}
    {% do known.extend([row[0], row[1]]) %}
  {%- endfor -%}
  {%- for entry in var('retired_sinks') if entry not in known -%}
    {% do exceptions.raise_compiler_error(
      'retired_sinks has ' ~ entry ~ ', where no sink has ever sent to. Known are: ' ~ (known | join(', ') or 'none')
    ) %}
  {%- endfor -%}
{% endmacro %}


{#
  The last batch whose rows nobody needs any more, of those that are older than `keep`: a dict with

    batch       0 where there is none
    ts          the largest commit ts of the rows up to it
    holders     what needs batches that are old enough

  Old is by the time of the logs, counted back from the smallest checkpoint of the upstreams, so that the answer does not depend on when it is asked.
#}
{% macro unneeded_batches(keep) %}
  {%- if keep == 'all' -%}
    {{ return({'batch': 0, 'ts': 0, 'holders': []}) }}
  {%- endif -%}
  {%- set checkpoints, needs = ref('int_checkpoints'), tidemark.needs_of_batches() -%}
  {%- set last_ts = (run_query('select min(ts) from (select max(checkpoint_ts) as ts from ' ~ checkpoints ~ ' group by upstream_id)')[0][0] or 0) | int -%}
  {#- the upper bits of a ts are milliseconds: the last ts of that millisecond -#}
  {%- set old_ts = [((last_ts // 262144) - tidemark.duration_millis(keep) + 1) * 262144 - 1, 0] | max -%}
  {#- up to which batch all rows are old, and then for each need up to which batch it is met -#}
  {%- set conditions = ['reached_ts <= ' ~ old_ts] -%}
  {%- for need in needs -%}{% do conditions.append(need.condition) %}{%- endfor -%}
  {%- set columns = [] -%}
  {%- for condition in conditions -%}{% do columns.append('coalesce(max(case when ' ~ condition ~ ' then batch_id end), 0)') %}{%- endfor -%}
  {%- set found = run_query(
    'with reached as (select batch_id, max(checkpoint_ts) as reached_ts from ' ~ checkpoints ~ ' group by batch_id) select ' ~ columns | join(', ') ~ ' from reached'
  )[0] -%}
  {%- set old_batch, batches, holders = found[0] | int, [found[0] | int], [] -%}
  {%- for need in needs -%}
    {%- if found[loop.index] | int < old_batch -%}
      {% do batches.append(found[loop.index] | int) %}
      {% do holders.append(need.name) %}
    {%- endif -%}
  {%- endfor -%}
  {%- set batch = batches | min -%}
  {%- set ts = run_query('select max(checkpoint_ts) from ' ~ checkpoints ~ ' where batch_id = ' ~ batch)[0][0] -%}
  {{ return({'batch': batch, 'ts': (ts or 0) | int, 'holders': holders}) }}
{% endmacro %}


{# Who needs batches: a name for a person, and a condition on batch_id and reached_ts, the largest checkpoint after the batch, that is met by batches which are not needed. #}
{% macro needs_of_batches() %}
  {%- set checkpoints, needs = ref('int_checkpoints'), [] -%}
  {%- for node in tidemark.kept_models() if node.config.materialized == 'batched' -%}
    {%- set handled = tidemark.last_batch_of(api.Relation.create(schema=node.schema, identifier=node.alias)) -%}
    {%- if handled < tidemark.current_batch() -%}
      {% do needs.append({'name': node.name ~ ', which has not handled all batches', 'condition': 'batch_id <= ' ~ handled}) %}
    {%- endif -%}
  {%- endfor -%}
  {%- set open_from = run_query(
    'select min(open_from_batch) from ' ~ checkpoints ~ ' where batch_id = (select max(batch_id) from ' ~ checkpoints ~ ')'
  )[0][0] -%}
  {% do needs.append({'name': 'a transaction that waits', 'condition': 'batch_id < ' ~ (open_from or 0)}) %}
  {%- for name in tidemark.unstarted_sinks() -%}
    {% do needs.append({'name': 'the sink ' ~ name ~ ', which has not run yet', 'condition': 'false'}) %}
  {%- endfor -%}
  {#- a sink has sent the rows of a batch when it has passed all checkpoints, and late ones when it has handled the batch; other log plans number batches otherwise -#}
  {%- for row in run_query(
    'select ' ~ tidemark.sink_name() ~ ", last.checkpoint_ts, case when last.plan_id = " ~ tidemark.text_literal(tidemark.log_plan_id()) ~ ' then last.batch_id end'
    ~ ' from (select sink, changefeed_id, sink_uri, max_by(struct(checkpoint_ts, batch_id, plan_id), struct(checkpoint_ts, written_at)) as last from ' ~ ref('sink_checkpoints')
    ~ ' where ' ~ tidemark.is_counted_sink() ~ ' group by sink, changefeed_id, sink_uri) order by 1'
  ) -%}
    {% do needs.append({
      'name': 'the sink ' ~ row[0],
      'condition': 'reached_ts <= ' ~ row[1] ~ (' and batch_id <= ' ~ row[2] if row[2] is not none else '')
    }) %}
  {%- endfor -%}
  {{ return(needs) }}
{% endmacro %}


{# A duration such as 30d in milliseconds. #}
{% macro duration_millis(text) %}
  {%- set seconds = {'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800} -%}
  {{ return((text | string)[:-1] | int * seconds[(text | string)[-1]] * 1000) }}
{% endmacro %}


{#
  Up to which batch and commit ts row changes were removed: [0, 0] if none were. By name, so that who asks need not depend on the model. What a clean that died has begun to remove
  counts as removed.
#}
{% macro removed_row_changes() %}
  {%- for node in graph.nodes.values() if execute and node.resource_type == 'model' and node.name == 'int_row_changes' -%}
    {%- set kept = tidemark.kept(api.Relation.create(schema=node.schema, identifier=node.alias)) -%}
    {{ return(kept.get('cleaning') or kept.get('cleaned') or [0, 0] if kept is not none else [0, 0]) }}
  {%- endfor -%}
  {{ return([0, 0]) }}
{% endmacro %}


{# Called by a sink when it runs: one that begins before what is kept would leave rows out. #}
{% macro refuse_removed_rows(sink, range) %}
  {%- set batch, ts = tidemark.removed_row_changes() -%}
  {%- if batch and (range.after_ts < ts or range.after_batch < batch) -%}
    {% do exceptions.raise_compiler_error(
      'sink_' ~ sink ~ ' is at ' ~ range.after_ts ~ ', and row changes up to ' ~ ts ~ ' were removed by `tidemark clean`: nothing was sent, since some would be missing.'
      ~ " If all logs are still there, build the tables from them again: --full-refresh --vars 'rebuild_from_logs: true' (docs/operations.md)"
    ) %}
  {%- endif -%}
{% endmacro %}
