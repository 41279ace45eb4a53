{# What the quarantine needs of a frame that could not be decoded. #}
{% macro bad_frame_columns() -%}
event.error_reason,
        event.error_message,
        case when event.error_reason is not null then substring(frame, 1, 4096) end as error_bytes
{%- endmacro %}
