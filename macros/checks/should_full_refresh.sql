{# dbt's own, except that rebuilding the tables that hold state has to be asked for twice. #}
{% macro should_full_refresh() %}
  {%- set configured = config.get('full_refresh') -%}
  {%- if configured is not none -%}
    {{ return(configured) }}
  {%- endif -%}
  {%- if flags.FULL_REFRESH and config.get('materialized') in ('incremental', 'batched') and not var('rebuild_from_logs') -%}
    {% do exceptions.raise_compiler_error(
      '--full-refresh rebuilds ' ~ model['name'] ~ ' from the logs, and what is no longer in them is lost. '
      ~ "If all logs are still there, ask again with --full-refresh --vars 'rebuild_from_logs: true'"
    ) %}
  {%- endif -%}
  {{ return(flags.FULL_REFRESH) }}
{% endmacro %}
