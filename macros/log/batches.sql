{#
  A batch is what one run found new in the logs; batches are numbered from 1. A model that is materialized as `batched` handles whole batches, and keeps in one number which
  was the last one (macros/kept/kept.sql).
#}

{# The last batch that the calling model has handled; 0 before its first run. #}
{% macro last_batch() %}
  {{ return(tidemark.last_batch_of(this) if tidemark.is_kept() else 0) }}
{% endmacro %}


{# The last batch that a model has handled; 0 before it is built. #}
{% macro last_batch_of(relation) %}
  {%- set kept = tidemark.kept(relation) -%}
  {{ return(kept.batch if kept is not none else 0) }}
{% endmacro %}


{# The last batch whose winners are chosen. #}
{% macro shown_batch() %}
  {{ return(tidemark.last_batch_of(ref('int_winners'))) }}
{% endmacro %}


{# The last batch that was planned; 0 when no log has held anything yet. #}
{% macro current_batch() %}
  {{ return(tidemark.last_batch_of(ref('log_segments'))) }}
{% endmacro %}


{# The batches that were planned and that the calling model has not handled yet. #}
{% macro new_batches() %}
  {{ return(range(tidemark.last_batch() + 1, tidemark.current_batch() + 1) | list) }}
{% endmacro %}


{# The last batch that the calling model will have handled when it has run: the plan of the logs makes one. #}
{% macro batch_after_this_run() %}
  {{ return(tidemark.last_batch() + 1 if model.name == 'log_segments' else tidemark.current_batch()) }}
{% endmacro %}


{#
  Whether running the calling model, which is built, would add nothing: there is no new batch, or no event of its kind in the new ones, or no new row in the model from which all its
  rows come.
#}
{% macro has_nothing_new() %}
  {%- if model.name == 'log_segments' -%}
    {{ return(tidemark.has_no_frames()) }}
  {%- endif -%}
  {%- set source = config.get('rows_from') -%}
  {{ return(
    not tidemark.new_batches()
    or tidemark.has_no_frames()
    or (source and tidemark.kept(ref(source)).rows_of <= tidemark.last_batch())
  ) }}
{% endmacro %}


{# Whether the calling model found, while it was compiled, that there is no frame for it. #}
{% macro has_no_frames() %}
  {{ return(target.type == 'tidemark' and adapter.remembered('frames of ' ~ model.name) == 'none') }}
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
    if parent not in selected_resources and graph.nodes[parent].config.materialized == 'batched' -%}
    {%- set name, current_batch = graph.nodes[parent].name, tidemark.current_batch() -%}
    {%- if tidemark.is_built([ref(name)]) and tidemark.last_batch_of(ref(name)) < current_batch -%}
      {% do exceptions.raise_compiler_error(
        model.name ~ ' cannot handle batch ' ~ current_batch ~ ' of the logs before ' ~ name ~ ' has: select it, too (--select +' ~ model.name ~ ')'
      ) %}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}
