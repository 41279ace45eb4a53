{# The values of a row image except those of some columns (lower-case names), in a form that can be compared. #}
{% macro values_without(image, columns) -%}
filter(map_entries(from_json({{ image }}, 'map<string, string>')), entry -> not array_contains({{ columns }}, lower(entry.key)))
{%- endmacro %}


{# Whether two row images have the same values in the columns that both have, except some (lower-case names): clusters change a table one after the other. #}
{% macro are_values_equal(image, other, columns) -%}
{%- set values, others = "from_json(" ~ image ~ ", 'map<string, string>')", "from_json(" ~ other ~ ", 'map<string, string>')" -%}
forall(
                    array_intersect(map_keys({{ values }}), map_keys({{ others }})),
                    name -> array_contains({{ columns }}, lower(name)) or {{ values }}[name] <=> {{ others }}[name]
                )
{%- endmacro %}
