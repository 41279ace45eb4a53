{# A seed is a table like any other. While its rows and types are those that it was built from, it is left as it is. #}
{% materialization seed, adapter='tidemark' %}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}
  {{ run_hooks(pre_hooks) }}
  {%- set rows, file_format = tidemark_seed_select(agate_table, model['config'].get('column_types', {})), tidemark_file_format(config) -%}
  {%- set made_from = adapter.made_from([rows, tojson(model['config'], sort_keys=true), file_format], []) -%}
  {%- if tidemark_is_made_from(made_from) -%}
    {%- call noop_statement('main', 'unchanged', rows_affected=agate_table.rows | length) -%}{%- endcall -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {% do tidemark_build_table(target_relation, rows, file_format, {'tidemark.made_from': made_from} if made_from else {}) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{% macro tidemark_seed_select(agate_table, types) %}
  select
    {% for name in agate_table.column_names -%}
      cast(column_{{ loop.index }} as {{ types.get(name, adapter.convert_type(agate_table, loop.index0)) }}) as {{ adapter.quote(name) }}
      {%- if not loop.last %}, {% endif %}
    {%- endfor %}
  from values
    {% for row in agate_table.rows -%}
      ({% for value in row %}{{ tidemark_literal(value) }}{% if not loop.last %}, {% endif %}{% endfor %})
      {%- if not loop.last %}, {% endif %}
    {%- endfor %}
  as rows ({% for name in agate_table.column_names %}column_{{ loop.index }}{% if not loop.last %}, {% endif %}{% endfor %})
{% endmacro %}


{# Loads the seeds that the calling model reads and that are not there. #}
{% macro tidemark_provide_seeds() %}
  {%- for unique_id in model['depends_on']['nodes'] if execute and unique_id.startswith('seed.') -%}
    {%- set seed = graph.nodes[unique_id] -%}
    {%- set relation = api.Relation.create(schema=seed.schema, identifier=seed.alias, type='view') -%}
    {%- if load_relation(relation) is none -%}
      {%- set select = tidemark_seed_select(adapter.seed_table(seed), seed.config.get('column_types', {})) -%}
      {% do tidemark_build_table(relation, select, tidemark_file_format(seed.config), is_main=false) %}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}


{% macro tidemark_literal(value) %}
  {%- if value is none -%}
    null
  {%- else -%}
    '{{ value | string | replace('\\', '\\\\') | replace("'", "\\'") }}'
  {%- endif -%}
{% endmacro %}
