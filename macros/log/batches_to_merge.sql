{#
  The latest batches of the calling model that are no larger than what comes after them: the new batch takes them over, so that a model that was run often has few batches, and
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
  {%- set new_sizes = tidemark.batch_sizes(ref('int_row_changes'), tidemark.new_batches()) -%}
  {%- set merged, gathered = [], namespace(size=new_sizes.values() | sum, is_done=false) -%}
  {%- for batch_id, size in tidemark.batch_sizes(this, tidemark.batches_of(this)) | dictsort(reverse=true) -%}
    {%- if not gathered.is_done and size <= gathered.size -%}
      {% do merged.append(batch_id) %}
      {%- set gathered.size = gathered.size + size -%}
    {%- else -%}
      {%- set gathered.is_done = true -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(merged) }}
{% endmacro %}


{# How large these batches of a model are that is built: in bytes, or in rows where only a query says it. #}
{% macro batch_sizes(relation, batches) %}
  {%- set sizes = {} -%}
  {%- if target.type == 'tidemark' -%}
    {%- set names = [] -%}
    {%- for batch_id in batches -%}{% do names.append('batch_id=' ~ batch_id) %}{%- endfor -%}
    {% do sizes.update(zip(batches, adapter.partition_bytes(tidemark.stored_table(relation), names))) %}
  {%- else -%}
    {%- for row in run_query(
      'select batch_id, count(*) from ' ~ relation ~ ' where batch_id in (' ~ batches | join(', ') ~ ') group by batch_id'
    ) -%}
      {% do sizes.update({row[0] | int: row[1] | int}) %}
    {%- endfor -%}
  {%- endif -%}
  {{ return(sizes) }}
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
