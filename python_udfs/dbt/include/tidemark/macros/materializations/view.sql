{#
  dbt-spark's view, which is left as it is while nothing has changed that it is made from: to make it, Spark reads all of the query. Unlike there, `tblproperties` are set.
#}
{% materialization view, adapter='tidemark' %}
  {{ run_hooks(pre_hooks) }}
  {%- set target_relation, made_from = this.incorporate(type='view'), tidemark_made_from() -%}
  {%- set existing = adapter.get_relation(database=this.database, schema=this.schema, identifier=this.identifier) -%}
  {%- if made_from and existing is not none and existing.is_view and not should_full_refresh()
    and adapter.table_property(existing, 'tidemark.made_from') == made_from -%}
    {%- call noop_statement('main', 'unchanged') -%}{%- endcall -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}
  {%- if existing is not none and not existing.is_view -%}
    {% do adapter.drop_relation(existing) %}
  {%- endif -%}
  {% do adapter.announce_change(target_relation) %}
  {%- call statement('main') -%}{{ get_create_view_as_sql(target_relation, compiled_code) }}{%- endcall -%}
  {%- set properties = [] -%}
  {%- for name, value in dict(config.get('tblproperties') or {}, **({'tidemark.made_from': made_from} if made_from else {})).items() -%}
    {% do properties.append(tidemark_literal(name) ~ ' = ' ~ tidemark_literal(value)) %}
  {%- endfor -%}
  {%- if properties -%}
    {% do adapter.announce_change(target_relation) %}
    {% do run_query('alter view ' ~ this ~ ' set tblproperties (' ~ properties | join(', ') ~ ')') %}
  {%- endif -%}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#
  What a relation is made from, as one short text; none where not all of it is known: an ephemeral model or no model at all says what it reads.
  with_rows: also the rows that it reads, which are known of tables; a list names the parents whose rows count.
#}
{% macro tidemark_made_from(with_rows=false) %}
  {%- set parents, tables = [], [] -%}
  {%- set texts = [compiled_code, model['description'], tojson(model['columns'], sort_keys=true), tojson(model['config'], sort_keys=true)] -%}
  {%- for unique_id in model['depends_on']['nodes'] -%}
    {%- set parent = graph.sources.get(unique_id) or graph.nodes[unique_id] -%}
    {%- if parent.config.get('materialized') == 'ephemeral' -%}
      {{ return(none) }}
    {%- endif -%}
    {%- set relation = api.Relation.create(schema=parent.schema, identifier=parent.identifier or parent.alias) -%}
    {% do parents.append(relation) %}
    {%- if with_rows is sameas true or (with_rows and parent.name in with_rows) -%}
      {%- set version = tidemark_current_version(relation) -%}
      {%- set kept = adapter.table_property(relation, 'tidemark.kept') if version is not none -%}
      {%- if kept -%}
        {#- a table that grows by batches counts its changes itself -#}
        {% do texts.append(version.identifier ~ ' ' ~ fromjson(kept).changes) %}
      {%- else -%}
        {% do tables.append(version) %}
      {%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- set files = adapter.data_files(tables) if with_rows and none not in tables else none -%}
  {%- if not parents or (with_rows and files is none) -%}
    {{ return(none) }}
  {%- endif -%}
  {{ return(adapter.made_from(texts + [files or ''], parents)) }}
{% endmacro %}
