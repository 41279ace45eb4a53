{# A view of what the logs hold beyond `positions`, cut into segments on frame boundaries: the batch `batch_id`. #}
{% macro log_plan(positions, batch_id) %}
  {%- set logs = [] -%}
  {%- for log in var('event_logs') -%}
    {#- what a storage tree has gained becomes an event log first -#}
    {%- set path = adapter.tree_log(log.upstream_id | string, log.tree, log.get('changefeed')) if log.tree else log.path -%}
    {% do logs.append({'upstream_id': log.upstream_id | string, 'path': path}) %}
  {%- endfor -%}
  {%- if target.type != 'tidemark' or flags.WHICH not in ('run', 'build', 'retry') -%}
    {#- a view that nobody may read: the logs are looked at when somebody does -#}
    {{ return(tidemark.source_view('log_plan', 'tidemark_log_plan', {'logs': tojson(logs), 'positions': tojson(positions)})) }}
  {%- endif -%}
  {%- set view = tidemark.view_name('log_plan') -%}
  {%- set planned = adapter.log_plan(view, logs, positions) -%}
  {%- if not planned -%}
    {% do adapter.remember('frames of log_segments', 'none') %}
  {%- endif -%}
  {#- what the staging models ask for -#}
  {%- set segments = [] -%}
  {%- for row in planned if row.segment_end > row.segment_start -%}
    {% do segments.append({
      'place': [batch_id, row.upstream_id, row.file, row.segment_start, row.segment_end, row.log_size],
      'families': row.families
    }) %}
  {%- endfor -%}
  {% do adapter.remember('segments after ' ~ (batch_id - 1), segments) %}
  {{ return(view) }}
{% endmacro %}


{# The time zones of the timestamps in the logs, by upstream. #}
{% macro time_zones() %}
  {%- set zones = {} -%}
  {%- for log in var('event_logs') if log.time_zone -%}{% do zones.update({log.upstream_id | string: log.time_zone}) %}{%- endfor -%}
  {{ return(zones) }}
{% endmacro %}


{# The time zone of an upstream's timestamps on the wire, in SQL; null where it is UTC. #}
{% macro time_zone_of(upstream_id) %}
  {%- set cases = [] -%}
  {%- for upstream, zone in tidemark.time_zones().items() -%}
    {% do cases.append(' when ' ~ tidemark.text_literal(upstream) ~ ' then ' ~ tidemark.text_literal(zone)) %}
  {%- endfor -%}
  {{ return('case ' ~ upstream_id ~ cases | join ~ ' end' if cases else 'cast(null as string)') }}
{% endmacro %}
