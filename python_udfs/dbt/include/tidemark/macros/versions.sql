{#
  A table of this adapter is a view over the one version of it that is complete.

  A build goes into a version of its own in the schema `<schema>_store`; then one statement points the view at it. A crash before that
  statement leaves the old rows in place, and what it left behind is removed by the next build. Versions that no view shows are dropped.
#}

{% macro tidemark_version_relation(relation, run_id) %}
  {{ return(api.Relation.create(schema=relation.schema ~ '_store', identifier=relation.identifier ~ '__' ~ run_id, type='table')) }}
{% endmacro %}


{% macro tidemark_new_version(relation) %}
  {%- set version = tidemark_version_relation(relation, adapter.run_id()) -%}
  {% do adapter.provide_schema(version.schema) %}
  {{ return(version) }}
{% endmacro %}


{# The version that the view shows now, or none. #}
{% macro tidemark_current_version(relation) %}
  {%- set existing = adapter.get_relation(database=relation.database, schema=relation.schema, identifier=relation.identifier) -%}
  {%- if existing is none or not existing.is_view -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set version = adapter.table_property(existing, 'tidemark.version') -%}
  {{ return(api.Relation.create(schema=relation.schema ~ '_store', identifier=version, type='table') if version else none) }}
{% endmacro %}


{# Points the view at a version, and drops the versions that nothing shows any more. #}
{% macro tidemark_switch_to(relation, version, hidden_columns=[], properties={}) %}
  {%- set columns = [] -%}
  {%- for column in adapter.get_columns_in_relation(version) if column.name not in hidden_columns and column.name not in columns -%}
    {% do columns.append(column.name) %}
  {%- endfor -%}
  {% do tidemark_show_table(
    relation, version.schema ~ '.' ~ version.identifier, dict(properties, **{'tidemark.version': version.identifier}), tidemark_quoted_list(columns)
  ) %}
  {% do tidemark_drop_other_versions(relation, version) %}
{% endmacro %}


{% macro tidemark_quoted_list(names) %}
  {%- set quoted = [] -%}
  {%- for name in names -%}{% do quoted.append(adapter.quote(name)) %}{%- endfor -%}
  {{ return(quoted | join(', ')) }}
{% endmacro %}


{% macro tidemark_drop_other_versions(relation, kept) %}
  {%- for row in run_query('show tables in ' ~ kept.schema ~ " like '" ~ relation.identifier ~ "__*'") -%}
    {%- set name = row[1] -%}
    {%- if name != kept.identifier and modules.re.match('^' ~ relation.identifier ~ '__[0-9]{20}$', name) -%}
      {% do adapter.announce_change(api.Relation.create(schema=kept.schema, identifier=name)) %}
      {% do run_query('drop table if exists ' ~ kept.schema ~ '.' ~ adapter.quote(name)) %}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}
