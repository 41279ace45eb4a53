{# The values of a row image except those of some columns (lower-case names), in a form that can be compared. #}
{% macro values_without(image, columns) -%}
filter(map_entries(from_json({{ image }}, 'map<string, string>')), entry -> not array_contains({{ columns }}, lower(entry.key)))
{%- endmacro %}
