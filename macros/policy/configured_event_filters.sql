{# The event filters of the changefeed as rows; the last one is for all tables and leaves nothing out, so that there is always one. #}
{% macro configured_event_filters() %}
  {%- for filter in tidemark.changefeed_setting('event_filters') %}
    select
        cast(array({{ tidemark.text_literals(filter.matcher) }}) as array<string>) as matcher,
        cast(array({{ tidemark.text_literals(filter.ignored_ops) }}) as array<string>) as ignored_ops,
        cast(array({{ tidemark.text_literals(filter.ignored_columns) }}) as array<string>) as ignored_columns,
        {{ loop.index0 if filter.value_expressions else 'cast(null as int)' }} as value_filter
    union all
  {%- endfor %}
    select
        array('*.*') as matcher,
        cast(array() as array<string>) as ignored_ops,
        cast(array() as array<string>) as ignored_columns,
        cast(null as int) as value_filter
{% endmacro %}
