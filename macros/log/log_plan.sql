{# A view of what the logs hold beyond `positions`, cut into segments on frame boundaries. #}
{% macro log_plan(positions) %}
  {%- set logs = [] -%}
  {%- for log in var('event_logs') -%}
    {% do logs.append({'upstream_id': log.upstream_id | string, 'path': log.path}) %}
  {%- endfor -%}
  {{ return(tidemark.source_view('log_plan', 'tidemark_log_plan', {'logs': tojson(logs), 'positions': tojson(positions)})) }}
{% endmacro %}
