{#
  Whether the models that a model asks while it is compiled are there. On a new state folder `dbt compile`, `dbt docs generate` and sqlfluff compile
  all models before the first one is built.
#}
{% macro is_built(relations) %}
  {%- if not execute -%}
    {{ return(false) }}
  {%- endif -%}
  {%- for relation in relations -%}
    {%- if load_relation(relation) is none -%}
      {{ return(false) }}
    {%- endif -%}
  {%- endfor -%}
  {{ return(true) }}
{% endmacro %}
