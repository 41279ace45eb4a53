{# A temporary view over one of Tidemark's data sources, named for this invocation: a server may share one session between several. #}
{% macro source_view(purpose, format, options) %}
  {%- set view = tidemark.view_name(purpose) -%}
  {%- set rendered = [] -%}
  {%- for key, value in options.items() -%}
    {% do rendered.append(key ~ " '" ~ value | string | replace('\\', '\\\\') | replace("'", "\\'") ~ "'") %}
  {%- endfor -%}
  {%- set clause = ' options (' ~ rendered | join(', ') ~ ')' if rendered else '' -%}
  {% do run_query('create or replace temporary view ' ~ view ~ ' using ' ~ format ~ clause) %}
  {{ return(view) }}
{% endmacro %}


{# Drops a view of source_view. #}
{% macro drop_source_view(view) %}
  {% do tidemark.announce_change(none) %}
  {% do run_query('drop view if exists ' ~ view) %}
{% endmacro %}


{# The name of a temporary view of this run. #}
{% macro view_name(purpose) %}
  {{ return('tidemark_' ~ purpose ~ '_' ~ invocation_id | replace('-', '_')) }}
{% endmacro %}
