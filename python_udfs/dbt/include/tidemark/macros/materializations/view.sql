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
  {%- set shown = tidemark_shown_table(existing) -%}
  {%- if existing is not none and not existing.is_view -%}
    {% do adapter.drop_relation(existing) %}
  {%- endif -%}
  {% do adapter.announce_change(target_relation) %}
  {%- call statement('main') -%}{{ get_create_view_as_sql(target_relation, compiled_code) }}{%- endcall -%}
  {%- set properties = tidemark_noted_properties(made_from) -%}
  {%- if properties -%}
    {% do adapter.announce_change(target_relation) %}
    {% do run_query('alter view ' ~ this ~ ' set tblproperties (' ~ tidemark_property_list(properties) ~ ')') %}
  {%- endif -%}
  {%- if shown -%}
    {#- until now it was a table -#}
    {% do tidemark_drop_shown(shown) %}
  {%- endif -%}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#
  What a relation is made from, as one short text; none where not all of it is known.
  with_rows: also the rows that it reads; a list names the parents whose rows count.
  further: a text that counts, too.
#}
{% macro tidemark_made_from(with_rows=false, further='') %}
  {%- set parents = tidemark_reads(model) -%}
  {%- set texts = [compiled_code, model['description'], tojson(model['columns'], sort_keys=true), tojson(model['config'], sort_keys=true), further] -%}
  {%- set names = (parents or []) | map(attribute='identifier') | list -%}
  {%- if not parents or (with_rows is sequence and with_rows | reject('in', names) | list) -%}
    {{ return(none) }}
  {%- endif -%}
  {%- for relation in parents if with_rows is sameas true or (with_rows and relation.identifier in with_rows) -%}
    {%- set state = adapter.relation_state(relation) -%}
    {%- if state is none -%}
      {{ return(none) }}
    {%- endif -%}
    {% do texts.append(state) %}
  {%- endfor -%}
  {{ return(adapter.made_from(texts, parents)) }}
{% endmacro %}


{# The relations that a node reads, also those behind ephemeral models, whose text it holds; none where not all are known. Sinks leave no relation that it could read. #}
{% macro tidemark_reads(node) %}
  {%- set relations = [] -%}
  {%- for unique_id in node['depends_on']['nodes'] -%}
    {%- set parent = graph.sources.get(unique_id) or graph.nodes.get(unique_id) -%}
    {%- set through = tidemark_reads(parent) if parent and parent.config.get('materialized') == 'ephemeral' else [] -%}
    {%- if not parent or through is none -%}
      {{ return(none) }}
    {%- elif parent.config.get('materialized') not in ('ephemeral', 'sink') -%}
      {% do relations.append(api.Relation.create(schema=parent.schema, identifier=parent.identifier or parent.alias)) %}
    {%- endif -%}
    {% do relations.extend(through) %}
  {%- endfor -%}
  {{ return(relations) }}
{% endmacro %}


{# The names of relations as one text, as adapter.relation_state reads it. #}
{% macro tidemark_names(relations) %}
  {%- set names = [] -%}
  {%- for relation in relations -%}{% do names.append([relation.schema, relation.identifier]) %}{%- endfor -%}
  {{ return(tojson(names)) }}
{% endmacro %}


{# The properties of a model's view: those of its config, and what it is made from where that is known. #}
{% macro tidemark_noted_properties(made_from) %}
  {%- set notes = {'tidemark.made_from': made_from, 'tidemark.reads': tidemark_names(tidemark_reads(model))} if made_from else {} -%}
  {{ return(dict(config.get('tblproperties') or {}, **notes)) }}
{% endmacro %}
