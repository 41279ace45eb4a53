{# Whether the sink URI is that of Kafka brokers. #}
{% macro is_kafka_sink() %}
  {{ return(tidemark.changefeed_setting('sink_kind') == 'kafka') }}
{% endmacro %}


{# Whether models are built by this command. Others, such as `dbt docs generate`, compile them without asking brokers. #}
{% macro is_running() %}
  {{ return(execute and flags.WHICH in ['run', 'build']) }}
{% endmacro %}


{# Over how many partitions rows are spread: partition-num, else what the topic of the sink URI has. #}
{% macro partition_count() %}
  {%- set configured = tidemark.changefeed_setting('partition_count') -%}
  {%- if configured is none and tidemark.is_kafka_sink() and tidemark.is_running() -%}
    {{ return(adapter.kafka_partition_count()) }}
  {%- endif -%}
  {{ return(configured or 1) }}
{% endmacro %}


{# The DDL statements of a range as decisions of the Kafka sink. #}
{% macro kafka_statements(range) %}
  {%- set statements = [] -%}
  {%- if range.has_rows and tidemark.is_running() -%}
    {%- set statements = adapter.kafka_statements(tidemark.sink_ddl_places(range)) -%}
  {%- endif -%}
  select * from values
  {%- for statement in statements %}
    ({{ tidemark.text_literal(statement.file) }}, {{ statement.offset }}L, {{ statement.number }}, {{ tidemark.text_literal(statement.topic) }}, {{ statement.partition }}, {{ statement.finished_ts }}L)
    {{- ',' if not loop.last }}
  {%- else %}
    ('', 0L, 0, '', 0, 0L)
  {%- endfor %}
  as statements (file, `offset`, row_number, topic, partition, finished_ts)
  where {{ statements | length > 0 }}
{% endmacro %}


{# Options of the Kafka sink, rendered when it runs: topics are there and schemas registered from here on. None when there is nothing to send. #}
{% macro kafka_sink_options() %}
  {%- if not tidemark.is_kafka_sink() or not tidemark.begin_range('kafka') -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set range = tidemark.sink_range('kafka') -%}
  {%- set schemas = tojson(tidemark.sink_schemas(range)) -%}
  {% do tidemark.warn_of_empty_deletes(range, schemas) %}
  {%- set known = [] -%}
  {%- for row in run_query('select distinct topic from ' ~ ref('table_dispatch')) -%}{% do known.append(row[0]) %}{%- endfor -%}
  {{ return({
    'settings': adapter.sink_settings(),
    'prepared': adapter.prepare_kafka(tidemark.first_rows(ref('row_dispatch'), range), known, tidemark.sink_ddl_places(range), schemas),
    'schemas': schemas,
    'up_to_ts': range.up_to_ts
  }) }}
{% endmacro %}
