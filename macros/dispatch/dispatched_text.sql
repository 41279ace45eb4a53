{#
  The text by which a row is dispatched: the value of a column as it was on the wire, which is what sinks send.

  Timestamps stand in UTC in the warehouse. A UTC time has one local time, so that going back is exact: the hour that a zone has twice is stored as
  the first of the two, and both have the same text on the wire.

  image: the row as a map. key_column: an item of dispatch_columns.
#}
{% macro dispatched_text(image, key_column) %}
  {%- set text = image ~ '[' ~ key_column ~ '.name]' -%}
  {%- if not tidemark.time_zones() -%}
    {{ return(text) }}
  {%- endif -%}
  {{ return('if(' ~ key_column ~ '.time_zone is null, ' ~ text ~ ', ' ~ tidemark.local_time(text, key_column ~ '.time_zone') ~ ')') }}
{% endmacro %}


{# A UTC time of the warehouse as it was on the wire, in a time zone. A zero date is no point in time; offsets are whole seconds, so the fraction stays as it is. #}
{% macro local_time(text, time_zone) %}
  {{ return(
    'if(' ~ text ~ " like '0000-00-00%', " ~ text ~ ", concat(substr(cast(convert_timezone('UTC', " ~ time_zone ~ ', to_timestamp_ntz(' ~ text
    ~ ')) as string), 1, 19), substr(' ~ text ~ ', 20)))'
  ) }}
{% endmacro %}
