{# Whether the sink URI is that of a TiDB or MySQL server. #}
{% macro is_tidb_sink() %}
  {{ return(tidemark.changefeed_setting('sink_kind') == 'mysql') }}
{% endmacro %}


{# Options of the database sink, rendered when it runs; none when there is nothing to write. #}
{% macro tidb_sink_options() %}
  {%- if not tidemark.is_tidb_sink() or not tidemark.begin_range('tidb') -%}
    {{ return(none) }}
  {%- endif -%}
  {{ return({'settings': adapter.sink_settings(), 'schemas': tojson(tidemark.sink_schemas(tidemark.sink_range('tidb')))}) }}
{% endmacro %}


{#
  What has to go through one task. With last-writer-wins that is a key. Otherwise it is a table: an update may change the key, and a value of a secondary unique
  key may move from one row to another.
#}
{% macro tidb_task_columns() %}
  {{ return('target_schema_name, target_table_name, key' if tidemark.is_active_active_mode() else 'target_schema_name, target_table_name') }}
{% endmacro %}
