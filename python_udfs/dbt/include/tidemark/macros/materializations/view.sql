{#
  dbt-spark's view, which is left as it is while nothing has changed that it is made from: to make it, Spark reads all of the query. Unlike there, `tblproperties` are set.
#}
{% materialization view, adapter='tidemark' %}
  {%- set made_from = tidemark_made_from() -%}
  {%- set existing = adapter.get_relation(database=this.database, schema=this.schema, identifier=this.identifier) -%}
  {%- if made_from and existing is not none and existing.is_view and not should_full_refresh()
    and adapter.table_property(existing, 'tidemark.made_from') == made_from -%}
    {{ run_hooks(pre_hooks) }}
    {%- call noop_statement('main', 'unchanged') -%}{%- endcall -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [this.incorporate(type='view')]}) }}
  {%- endif -%}
  {%- set made, properties = create_or_replace_view(), [] -%}
  {%- for name, value in dict(config.get('tblproperties') or {}, **({'tidemark.made_from': made_from} if made_from else {})).items() -%}
    {% do properties.append(tidemark_literal(name) ~ ' = ' ~ tidemark_literal(value)) %}
  {%- endfor -%}
  {%- if properties -%}
    {% do run_query('alter view ' ~ this ~ ' set tblproperties (' ~ properties | join(', ') ~ ')') %}
  {%- endif -%}
  {{ return(made) }}
{% endmaterialization %}


{#
  What a relation is made from, as one short text; none where not all of it is known: an ephemeral model or no model at all says what it reads.
  with_rows: also the rows that it reads, which are known of tables; a list names the parents whose rows count.
#}
{% macro tidemark_made_from(with_rows=false) %}
  {%- set parents, tables = [], [] -%}
  {%- for unique_id in model['depends_on']['nodes'] -%}
    {%- set parent = graph.sources.get(unique_id) or graph.nodes[unique_id] -%}
    {%- if parent.config.get('materialized') == 'ephemeral' -%}
      {{ return(none) }}
    {%- endif -%}
    {%- set relation = api.Relation.create(schema=parent.schema, identifier=parent.identifier or parent.alias) -%}
    {% do parents.append(relation) %}
    {%- if with_rows is sameas true or (with_rows and parent.name in with_rows) -%}
      {% do tables.append(tidemark_current_version(relation)) %}
    {%- endif -%}
  {%- endfor -%}
  {%- set files = adapter.data_files(tables) if with_rows and none not in tables else none -%}
  {%- if not parents or (with_rows and files is none) -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set texts = [compiled_code, model['description'], tojson(model['columns'], sort_keys=true), tojson(model['config'], sort_keys=true)] -%}
  {{ return(adapter.made_from(texts + [files or ''], parents)) }}
{% endmacro %}
