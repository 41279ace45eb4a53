{#
  Tables of a format with transactions, Delta or Iceberg: one statement of the format replaces the rows, so there are no versions. The table stands where other engines find it,
  and the model's name is a view over it.

    delta      <schema>_store.<model> in Spark's own catalog
    iceberg    <schema>.<model> in the catalog that the var `iceberg_catalog` names
#}

{# The format of the table of a model or seed: what its config says (`file_format`), else the var `table_format`. #}
{% macro tidemark_file_format(node_config) %}
  {{ return(node_config.get('file_format') or var('table_format', 'parquet')) }}
{% endmacro %}


{# The name of the table of a relation in such a format; none for a format that has versions. #}
{% macro tidemark_format_table(relation, file_format) %}
  {%- if file_format == 'iceberg' -%}
    {{ return([var('iceberg_catalog', 'lake'), relation.schema, relation.identifier] | join('.')) }}
  {%- elif file_format == 'delta' -%}
    {{ return(relation.schema ~ '_store.' ~ relation.identifier) }}
  {%- endif -%}
  {{ return(none) }}
{% endmacro %}


{# Builds a table from a query and shows it under its name. `properties`: what is noted of it; `is_main`: whether that is what the calling model does. #}
{% macro tidemark_build_table(relation, select, file_format, properties={}, is_main=true) %}
  {%- set table = tidemark_format_table(relation, file_format) -%}
  {%- if table is none -%}
    {%- set version = tidemark_new_version(relation) -%}
    {% do tidemark_run_main('create table ' ~ version ~ ' using ' ~ file_format ~ ' as ' ~ select, version, is_main) %}
    {% do tidemark_switch_to(relation, version, properties=properties) %}
  {%- else -%}
    {%- if file_format == 'delta' -%}
      {% do adapter.provide_schema(relation.schema ~ '_store') %}
    {%- else -%}
      {% do adapter.announce_change(none) %}
      {% do run_query('create schema if not exists ' ~ table.rpartition('.')[0]) %}
    {%- endif -%}
    {%- set entry = api.Relation.create(schema=relation.schema ~ '_store', identifier=relation.identifier) if file_format == 'delta' else none -%}
    {% do tidemark_run_main('create or replace table ' ~ table ~ ' using ' ~ file_format ~ ' as ' ~ select, entry, is_main) %}
    {% do tidemark_show_table(relation, table, dict(properties, **{'tidemark.table': table, 'tidemark.built': adapter.run_id()})) %}
  {%- endif -%}
{% endmacro %}


{# Points the name of a relation at a table by one statement, and drops the table that it has shown until now. #}
{% macro tidemark_show_table(relation, table, properties, columns='*') %}
  {%- set existing = adapter.get_relation(database=relation.database, schema=relation.schema, identifier=relation.identifier) -%}
  {%- set shown = tidemark_shown_table(existing) -%}
  {%- if existing is not none and not existing.is_view -%}
    {% do adapter.drop_relation(existing) %}
  {%- endif -%}
  {% do adapter.announce_change(relation) %}
  {% do run_query('create or replace view ' ~ relation ~ ' tblproperties (' ~ tidemark_property_list(properties) ~ ') as select ' ~ columns ~ ' from ' ~ table) %}
  {% do adapter.cache_added(relation) %}
  {%- if shown and shown != table -%}
    {% do tidemark_drop_shown(shown) %}
  {%- endif -%}
{% endmacro %}


{# The table that a relation of this adapter shows, by its name; none where it is no such relation. #}
{% macro tidemark_shown_table(existing) %}
  {%- if existing is none or not existing.is_view -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set version = adapter.table_property(existing, 'tidemark.version') -%}
  {{ return(existing.schema ~ '_store.' ~ version if version else adapter.table_property(existing, 'tidemark.table')) }}
{% endmacro %}


{# Whether the table of the calling model is there, and made from just this. #}
{% macro tidemark_is_made_from(made_from) %}
  {%- set existing = adapter.get_relation(database=this.database, schema=this.schema, identifier=this.identifier) if made_from else none -%}
  {%- set table = tidemark_shown_table(existing) -%}
  {{ return(
    table and adapter.is_stored(table) and not should_full_refresh() and adapter.table_property(existing, 'tidemark.made_from') == made_from
  ) }}
{% endmacro %}


{# Properties as statements list them. #}
{% macro tidemark_property_list(properties) %}
  {%- set listed = [] -%}
  {%- for name, value in properties.items() -%}{% do listed.append(tidemark_literal(name) ~ ' = ' ~ tidemark_literal(value)) %}{%- endfor -%}
  {{ return(listed | join(', ')) }}
{% endmacro %}


{% macro tidemark_drop_shown(table) %}
  {%- set names = table.split('.') -%}
  {% do adapter.announce_change(api.Relation.create(schema=names[0], identifier=names[1]) if names | length == 2 else none) %}
  {% do run_query('drop table if exists ' ~ table) %}
{% endmacro %}
