{#
  Built beside, then switched to by one statement: a reader sees the old rows or the new ones, never none and never half.
  With `only_if_changed` it is left as it is while its text, and the files of all that it reads, are those that it was built from; a list names those of its parents whose files count.
#}
{% materialization table, adapter='tidemark', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='view') -%}
  {{ run_hooks(pre_hooks) }}
  {%- set made_from = tidemark_made_from(with_rows=config.get('only_if_changed')) if config.get('only_if_changed') else none -%}
  {%- set current = tidemark_current_version(target_relation) if made_from else none -%}
  {%- if current is not none and adapter.is_there(current) and not should_full_refresh()
    and adapter.table_property(target_relation, 'tidemark.made_from') == made_from -%}
    {%- call noop_statement('main', 'unchanged') -%}{%- endcall -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {%- if model['language'] == 'python' -%}
    {# dbt runs Python only from the materialization itself #}
    {%- call statement('main', language='python') -%}{{ tidemark_python_model(compiled_code) }}{%- endcall -%}
  {%- endif -%}
  {%- set select = tidemark_model_select() -%}
  {%- set version = tidemark_new_version(target_relation) -%}
  {% do tidemark_run_main(tidemark_create_version_sql(version, select), version) %}
  {% do tidemark_switch_to(target_relation, version, made_from=made_from) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
