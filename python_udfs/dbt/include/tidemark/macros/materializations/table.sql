{# Built beside, then switched to by one statement: a reader sees the old rows or the new ones, never none and never half. #}
{% materialization table, adapter='tidemark', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='view') -%}
  {{ run_hooks(pre_hooks) }}
  {%- if model['language'] == 'python' -%}
    {# dbt runs Python only from the materialization itself #}
    {%- call statement('main', language='python') -%}{{ tidemark_python_model(compiled_code) }}{%- endcall -%}
  {%- endif -%}
  {%- set select = tidemark_model_select() -%}
  {%- set version = tidemark_new_version(target_relation) -%}
  {% do tidemark_run_main(tidemark_create_version_sql(version, select)) %}
  {% do tidemark_switch_to(target_relation, version) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
