{# Under which name a table is written, as a struct of schema_name and table_name. #}
{% macro target_of(schema_name, table_name) %}
  {%- set routing = tidemark.routing() -%}
  {%- if not routing -%}
    {{ return('struct(' ~ schema_name ~ ' as schema_name, ' ~ table_name ~ ' as table_name)') }}
  {%- endif -%}
  {{ return('tidemark_target(' ~ tidemark.text_literal(tojson(routing)) ~ ', ' ~ schema_name ~ ', ' ~ table_name ~ ')') }}
{% endmacro %}


{# The name by which a row is written, in front of the name that its table has: without rules nothing is looked up. #}
{% macro routed(target_name, own_name) %}
  {{ return('coalesce(' ~ target_name ~ ', ' ~ own_name ~ ')' if tidemark.routing() else own_name) }}
{% endmacro %}
