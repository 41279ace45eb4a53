{# Pre-hook of a model that reads seeds: `dbt run` does not load them, so it would fail on a new state folder. #}
{% macro provide_seeds() %}
  {%- if target.type == 'tidemark' -%}
    {% do tidemark_provide_seeds() %}
  {%- endif -%}
{% endmacro %}
