{#
  A batch is what one run found new in the logs. An incremental model handles whole batches and keeps each one in a partition; the
  partitions it has say which batches it has handled, also those that held nothing for it. A table that is merged into has no such
  partitions: a property of it says the last batch, and is set after the merge, so a run that dies between the two merges again.
#}

{# The last batch that the calling model has handled; 0 before its first run. #}
{% macro last_batch() %}
  {%- if not tidemark.is_kept() -%}
    {{ return(0) }}
  {%- endif -%}
  {{ return(tidemark.noted_batch(tidemark.stored_table(this)) if tidemark.is_merged() else tidemark.last_batch_of(this)) }}
{% endmacro %}


{# Whether the calling model adds to what it has, and does not begin anew. #}
{% macro is_kept() %}
  {{ return(execute and load_relation(this) is not none and not should_full_refresh()) }}
{% endmacro %}


{# The last batch that a model with a partition per batch, which is built, has handled. #}
{% macro last_batch_of(relation) %}
  {{ return(([0] + tidemark.batches_of(relation)) | max) }}
{% endmacro %}


{# The batches of a model with a partition per batch, which is built. #}
{% macro batches_of(relation) %}
  {%- set batches = [] -%}
  {%- for name in tidemark.partition_names(tidemark.stored_table(relation)) -%}
    {% do batches.append(name.split('=')[1] | int) %}
  {%- endfor -%}
  {{ return(batches) }}
{% endmacro %}


{% macro partition_names(table) %}
  {%- if target.type == 'tidemark' -%}
    {{ return(adapter.partition_names(table)) }}
  {%- endif -%}
  {{ return(run_query('show partitions ' ~ table).columns[0].values()) }}
{% endmacro %}


{# Whether the calling model is one table that MERGE keeps. #}
{% macro is_merged() %}
  {{ return(config.get('file_format') == 'delta') }}
{% endmacro %}


{# The last batch by the property of a table that is merged into. #}
{% macro noted_batch(table) %}
  {%- for row in run_query('show tblproperties ' ~ table) -%}
    {%- if row[0] == 'tidemark.last_batch' -%}
      {{ return(row[1] | int) }}
    {%- endif -%}
  {%- endfor -%}
  {{ return(0) }}
{% endmacro %}


{# The last batch whose winners are chosen. #}
{% macro shown_batch() %}
  {%- set winners = ref('int_winners') -%}
  {%- if not tidemark.is_built([winners]) -%}
    {{ return(0) }}
  {%- endif -%}
  {{ return(tidemark.noted_batch(tidemark.stored_table(winners)) if var('table_format') == 'delta' else tidemark.last_batch_of(winners)) }}
{% endmacro %}


{# The last batch that was planned; 0 when no log has held anything yet. #}
{% macro current_batch() %}
  {{ return(([0] + tidemark.planned_batches()) | max) }}
{% endmacro %}


{# The batches that were planned. #}
{% macro planned_batches() %}
  {%- set segments_table = ref('log_segments') -%}
  {{ return(tidemark.batches_of(segments_table) if tidemark.is_built([segments_table]) else []) }}
{% endmacro %}


{# The batches that were planned and that the calling model has not handled yet. #}
{% macro new_batches() %}
  {%- set last_batch, batches = tidemark.last_batch(), [] -%}
  {%- for batch_id in tidemark.planned_batches() if batch_id > last_batch -%}
    {% do batches.append(batch_id) %}
  {%- endfor -%}
  {{ return(batches) }}
{% endmacro %}


{#
  Whether the calling model, whose every row comes from a row of the model in its config `rows_from`, has nothing to make of the new batches. Files tell it without a query: a batch that
  is only noted as handled has none.
#}
{% macro has_no_rows_to_read() %}
  {%- set source = config.get('rows_from') -%}
  {{ return(source and target.type == 'tidemark' and tidemark.batch_sizes(ref(source), tidemark.new_batches()).values() | sum == 0) }}
{% endmacro %}


{# The adapter asks: without a new batch, or without events of its kind or rows in the new ones, an incremental model has nothing to add. #}
{% macro tidemark_has_nothing_new() %}
  {%- set is_by_batch = config.get('partition_by') == 'batch_id' or tidemark.is_merged() -%}
  {%- if adapter.remembered('frames of ' ~ model.name) == 'none' or tidemark.has_no_rows_to_read() -%}
    {{ return(true) }}
  {%- endif -%}
  {{ return(is_by_batch and model.name != 'log_segments' and not tidemark.new_batches()) }}
{% endmacro %}


{#
  Pre-hook: a batch that is planned, but not handled by a model that this one reads, would count as handled here without its rows. Models that the command has selected
  have run before this one.
#}
{% macro check_batches_are_there() %}
  {%- if not execute or model.config.materialized == 'view' -%}
    {{ return('') }}
  {%- endif -%}
  {%- for parent in graph.nodes[model.unique_id].depends_on.nodes
    if parent not in selected_resources and graph.nodes[parent].config.materialized in ('incremental', 'decoded') -%}
    {%- set name, current_batch = graph.nodes[parent].name, tidemark.current_batch() -%}
    {%- if tidemark.is_built([ref(name)]) and tidemark.last_batch_of(ref(name)) < current_batch -%}
      {% do exceptions.raise_compiler_error(
        model.name ~ ' cannot handle batch ' ~ current_batch ~ ' of the logs before ' ~ name ~ ' has: select it, too (--select +' ~ model.name ~ ')'
      ) %}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}


{# Post-hook: notes every planned batch as handled. The plan itself needs no such note. #}
{% macro note_handled_batches() %}
  {%- if not execute or model.config.materialized != 'incremental' or model.name == 'log_segments' -%}
    {{ return('') }}
  {%- endif -%}
  {%- set batches, table = tidemark.new_batches(), tidemark.stored_table(this) -%}
  {%- if not batches -%}
    {{ return('') }}
  {%- elif tidemark.is_merged() -%}
    {{ return('alter table ' ~ table ~ " set tblproperties ('tidemark.last_batch' = '" ~ batches | max ~ "')") }}
  {%- endif -%}
  {{ return(tidemark.add_batches_sql(table, batches)) }}
{% endmacro %}


{% macro add_batches_sql(table, batches) %}
  {%- set partitions = [] -%}
  {%- for batch_id in batches -%}{% do partitions.append('partition (batch_id = ' ~ batch_id ~ ')') %}{%- endfor -%}
  {{ return('alter table ' ~ table ~ ' add if not exists ' ~ partitions | join(' ')) }}
{% endmacro %}


{# The table behind a model: with the embedded adapter a model's name is a view over it. #}
{% macro stored_table(relation) %}
  {%- if target.type == 'tidemark' -%}
    {{ return(tidemark_current_version(relation)) }}
  {%- endif -%}
  {{ return(relation) }}
{% endmacro %}
