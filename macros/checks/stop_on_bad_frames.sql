{# Post-hook of the quarantine: with `on_bad_frame: fail` a frame that cannot be read ends the run before its rows go anywhere. #}
{% macro stop_on_bad_frames() %}
  {%- if execute and var('on_bad_frame') == 'fail' -%}
    {%- set bad = run_query('select file, `offset`, reason, count(*) over () from ' ~ this ~ ' order by file, `offset` limit 1') -%}
    {%- if bad | length > 0 -%}
      {% do exceptions.raise_compiler_error(
        'on_bad_frame is fail, and ' ~ tidemark.counted(bad[0][3], 'frame') ~ ' cannot be read. The first: ' ~ bad[0][0] ~ ' at byte ' ~ bad[0][1]
        ~ ' (' ~ bad[0][2] ~ "). Repair the log, or go on without these frames: --vars 'on_bad_frame: quarantine'; `select * from " ~ this ~ '` shows them'
      ) %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
