{#
  A table that other models add rows to (tidemark.add_rows). Running the model makes it, with the rows of its query, mostly none; later it adds the columns that another
  version of the model has, null in the rows that are there.
#}
{% materialization appended, default %}
  {{ run_hooks(pre_hooks) }}
  {%- if tidemark.is_kept() -%}
    {% do tidemark.check_format(tidemark.kept(this)) %}
    {%- call noop_statement('main', 'nothing new') -%}{%- endcall -%}
    {% do tidemark.append_columns() %}
  {%- else -%}
    {% do tidemark.write_batches(none, 0) %}
  {%- endif -%}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [this.incorporate(type='view')]}) }}
{% endmaterialization %}


{# Adds the columns of the calling model that its table does not have. A run that died before the table was shown with them has left only that to do. #}
{% macro append_columns() %}
  {%- set kept, table = tidemark.kept(this), tidemark.stored_table(this) -%}
  {%- set view = tidemark.view_name('columns_of_' ~ model['alias']) -%}
  {%- set offered = tidemark.prepared_view(view, tidemark.model_select()) -%}
  {%- set shown = adapter.get_columns_in_relation(this) | map(attribute='name') | list -%}
  {%- set stored = run_query('describe ' ~ table).columns[0].values() | list -%}
  {%- if offered | reject('in', shown) | list -%}
    {%- set added = [] -%}
    {%- for row in run_query('describe ' ~ view) if row[0] not in stored -%}{% do added.append(adapter.quote(row[0]) ~ ' ' ~ row[1]) %}{%- endfor -%}
    {%- if added -%}
      {% do run_query('alter table ' ~ table ~ ' add columns (' ~ added | join(', ') ~ ')') %}
    {%- endif -%}
    {%- if kept.format == 'parquet' -%}
      {% do tidemark.show_parts(this, table, kept) %}
    {%- else -%}
      {% do tidemark.show_format_table(this, table, kept) %}
    {%- endif -%}
  {%- endif -%}
  {% do tidemark.drop_prepared_view(view) %}
  {% do tidemark.check_columns(this, offered) %}
{% endmacro %}
