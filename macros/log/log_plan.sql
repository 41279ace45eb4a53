{# A view of what the logs hold beyond `positions`, cut into segments on frame boundaries. #}
{% macro log_plan(positions) %}
  {%- set logs = [] -%}
  {%- for log in var('event_logs') -%}
    {#- what a storage tree has gained becomes an event log first -#}
    {%- set path = adapter.tree_log(log.upstream_id | string, log.tree, log.changefeed) if log.tree else log.path -%}
    {% do logs.append({'upstream_id': log.upstream_id | string, 'path': path}) %}
  {%- endfor -%}
  {{ return(tidemark.source_view('log_plan', 'tidemark_log_plan', {'logs': tojson(logs), 'positions': tojson(positions)})) }}
{% endmacro %}


{# The time zones of the timestamps in the logs, by upstream. #}
{% macro time_zones() %}
  {%- set zones = {} -%}
  {%- for log in var('event_logs') if log.time_zone -%}{% do zones.update({log.upstream_id | string: log.time_zone}) %}{%- endfor -%}
  {{ return(zones) }}
{% endmacro %}
