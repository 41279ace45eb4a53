{#
  A reader sees the old rows or the new ones, never none and never half: a table is built beside, then switched to by one statement; in a format with transactions one statement replaces
  its rows (formats.sql).
  With `only_if_changed` it is left as it is while its text, and the files of all that it reads, are those that it was built from; a list names those of its parents whose files count.
#}
{% materialization table, adapter='tidemark', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='view') -%}
  {{ run_hooks(pre_hooks) }}
  {%- set file_format = tidemark_file_format(config) -%}
  {%- set made_from = tidemark_made_from(with_rows=config.get('only_if_changed'), further=file_format) if config.get('only_if_changed') else none -%}
  {%- if tidemark_is_made_from(made_from) -%}
    {%- call noop_statement('main', 'unchanged') -%}{%- endcall -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {%- if model['language'] == 'python' -%}
    {# dbt runs Python only from the materialization itself #}
    {%- call statement('main', language='python') -%}{{ tidemark_python_model(compiled_code) }}{%- endcall -%}
  {%- endif -%}
  {% do tidemark_build_table(target_relation, tidemark_model_select(), file_format, tidemark_noted_properties(made_from)) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
