-- one row per stretch of an event log that a run found new: whole frames, from one frame boundary to another
{% set positions = {} %}
{% set batch_id = tidemark.last_batch() + 1 %}
{% if tidemark.is_kept() %}
    {% set planned = 'select file, max(segment_end), max(log_size) from ' ~ this ~ ' where batch_id < ' ~ batch_id %}
    {% for row in run_query(planned ~ ' group by file') %}
        {% do positions.update({row[0]: [row[1] | int, row[2] | int]}) %}
    {% endfor %}
{% endif %}

with new_segments as (
    select * from {{ tidemark.log_plan(positions, batch_id) if execute else 'log_plan' }}
),

final as (
    select
        upstream_id,
        file,
        segment_start,
        segment_end,
        log_size,
        frame_count,
        families,
        skipped_bytes,
        torn_bytes,
        cast({{ batch_id }} as bigint) as batch_id
    from new_segments
)

select * from final
