{#
  The latest batches of the calling model that hold no more rows than what comes after them: the new batch takes them over, so that a model that was run often has few batches, and
  every row is rewritten only as often as its batch doubles. None while nothing is new, and none where MERGE does this.
#}
{% macro batches_to_merge() %}
  {%- if tidemark.is_merged() -%}
    {{ return([]) }}
  {%- endif -%}
  {%- set last_batch, current_batch = tidemark.last_batch(), tidemark.current_batch() -%}
  {%- if last_batch == 0 or current_batch == last_batch -%}
    {{ return([]) }}
  {%- endif -%}
  {%- set merged = [] -%}
  {%- set gathered = namespace(rows=run_query(
    'select count(*) from ' ~ ref('int_row_changes') ~ ' where batch_id > ' ~ last_batch
  )[0][0] | int, is_done=false) -%}
  {%- for row in run_query('select batch_id, count(*) from ' ~ this ~ ' group by batch_id order by batch_id desc') -%}
    {%- if not gathered.is_done and row[1] | int <= gathered.rows -%}
      {% do merged.append(row[0] | int) %}
      {%- set gathered.rows = gathered.rows + row[1] | int -%}
    {%- else -%}
      {%- set gathered.is_done = true -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(merged) }}
{% endmacro %}


{# Post-hook: removes the batches that the last one took over. Until then their rows are there twice, which a merge does not mind. #}
{% macro drop_merged_batches() %}
  {%- if not execute or tidemark.is_merged() -%}
    {{ return('') }}
  {%- endif -%}
  {%- set last_batch = tidemark.last_batch_of(this) -%}
  {%- set from_batch = run_query('select min(from_batch) from ' ~ this ~ ' where batch_id = ' ~ last_batch)[0][0] -%}
  {%- set partitions = [] -%}
  {%- for batch_id in tidemark.batches_of(this) -%}
    {%- if from_batch is not none and from_batch | int <= batch_id < last_batch -%}
      {% do partitions.append('partition (batch_id = ' ~ batch_id ~ ')') %}
    {%- endif -%}
  {%- endfor -%}
  {{ return('alter table ' ~ tidemark.stored_table(this) ~ ' drop if exists ' ~ partitions | join(', ') if partitions else '') }}
{% endmacro %}
