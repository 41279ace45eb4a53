{# The ts of the snapshot that was asked for with the var of this name; none for the current rows. Anything that cannot be shown is refused. #}
{% macro as_of_ts() %}
  {%- set wanted = var('as_of_ts') -%}
  {%- set checkpoints, sync_points = ref('int_checkpoints'), ref('sync_points') -%}
  {%- if wanted is none or not tidemark.is_built([checkpoints, sync_points]) -%}
    {{ return(none if wanted is none else 0) }}
  {%- endif -%}
  {%- set range = run_query(
    'select min(first_ts), min(last_ts) from (select upstream_id, min(nullif(checkpoint_ts, 0)) as first_ts, max(checkpoint_ts) as last_ts from '
    ~ checkpoints ~ ' group by upstream_id)'
  )[0] -%}
  {%- if wanted == 'sync_point' -%}
    {%- set found = run_query(
      'select max(sync_point_ts) from ' ~ sync_points ~ ' where is_complete and sync_point_ts <= ' ~ (range[1] or 0)
    )[0][0] -%}
    {%- if found is none -%}
      {% do exceptions.raise_compiler_error('as_of_ts is sync_point, but the logs hold no complete sync point yet; `select * from ' ~ sync_points ~ '` lists those there are') %}
    {%- endif -%}
    {{ return(found | int) }}
  {%- endif -%}
  {%- if range[0] is none or wanted | int > range[1] | int -%}
    {% do exceptions.raise_compiler_error(
      'as_of_ts = ' ~ wanted ~ ': rows are complete only up to ' ~ (range[1] or 0) ~ '. Choose a ts up to that, or build on newer logs'
    ) %}
  {%- endif -%}
  {{ return(wanted | int) }}
{% endmacro %}
