{# A number with its word, for messages: `1 frame`, `2 frames`. #}
{% macro counted(count, noun) %}
  {{ return(count ~ ' ' ~ noun ~ ('' if count | int == 1 else 's')) }}
{% endmacro %}
