{#
  The ts of the snapshot that was asked for with the var of this name; none for the current rows. Anything that cannot be shown is refused: what is beyond the checkpoint of a
  cluster, what is before the logs begin, and what is before the row changes that are kept.
#}
{% macro as_of_ts() %}
  {%- set wanted = var('as_of_ts') -%}
  {%- set checkpoints, handshakes, sync_points = ref('int_checkpoints'), ref('stg_handshakes'), ref('sync_points') -%}
  {%- if wanted is none or not tidemark.is_built([checkpoints, handshakes, sync_points]) -%}
    {{ return(none if wanted is none else 0) }}
  {%- endif -%}
  {%- set range = run_query(
    'select (select min(resolved_ts) from ' ~ handshakes ~ ' where error_reason is null), min(last_ts)'
    ~ ' from (select max(checkpoint_ts) as last_ts from ' ~ checkpoints ~ ' group by upstream_id)'
  )[0] -%}
  {%- set first_ts, last_ts = (range[0] or 0) | int, (range[1] or 0) | int -%}
  {%- if wanted == 'sync_point' -%}
    {%- set found = run_query(
      'select max(sync_point_ts) from ' ~ sync_points ~ ' where is_complete and sync_point_ts <= ' ~ last_ts
    )[0][0] -%}
    {%- if found is none -%}
      {% do exceptions.raise_compiler_error('as_of_ts is sync_point, but the logs hold no complete sync point yet; `select * from ' ~ sync_points ~ '` lists those there are') %}
    {%- endif -%}
    {%- set wanted = found | int -%}
  {%- endif -%}
  {%- set removed_ts = tidemark.removed_row_changes()[1] -%}
  {%- if wanted | int > last_ts -%}
    {% do exceptions.raise_compiler_error(
      'as_of_ts = ' ~ wanted ~ ': rows are complete only up to ' ~ last_ts ~ '. Choose a ts up to that, or build on newer logs'
    ) %}
  {%- elif wanted | int < first_ts -%}
    {% do exceptions.raise_compiler_error(
      'as_of_ts = ' ~ wanted ~ ': the logs begin at ' ~ first_ts ~ ', nothing is known of the time before. Choose a ts from there to ' ~ last_ts
    ) %}
  {%- elif wanted | int < removed_ts -%}
    {% do exceptions.raise_compiler_error(
      'as_of_ts = ' ~ wanted ~ ': row changes up to ' ~ removed_ts ~ ' were removed by `tidemark clean`, which a snapshot of that time needs. Choose a ts from ' ~ removed_ts
      ~ ' to ' ~ last_ts
    ) %}
  {%- endif -%}
  {{ return(wanted | int) }}
{% endmacro %}
