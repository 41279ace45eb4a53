{# Whether the sink URI is that of a storage tree. #}
{% macro is_storage_sink() %}
  {{ return(
    tidemark.changefeed_setting('sink_kind') == 'storage' and not tidemark.changefeed_setting('keeps_nothing')
  ) }}
{% endmacro %}


{# Options of the storage sink, rendered when it runs: the tree is this run's from here on. None when there is nothing to send. #}
{% macro storage_sink_options() %}
  {%- if not tidemark.is_storage_sink() -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set tree = adapter.open_storage_tree(model.name) -%}
  {% do tidemark.refuse_lost_tree(tree.checkpoint, tidemark.noted_position('storage').checkpoint_ts) %}
  {%- if not tidemark.begin_range('storage') -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set range = tidemark.sink_range('storage') -%}
  {%- set schemas = tojson(tidemark.sink_schemas(range)) -%}
  {% do tidemark.warn_of_empty_deletes(range, schemas) %}
  {%- if tidemark.changefeed_setting('protocol') == 'avro' or tidemark.changefeed_setting('has_column_selectors') -%}
    {#- in the order of the rows, whatever order the tasks come in: ids of schemas are part of Avro files -#}
    {% do adapter.prepare_files(
      tidemark.first_rows("(select *, '' as topic from " ~ ref('row_policy') ~ ' where policy_op is not null)', range), schemas
    ) %}
  {%- endif -%}
  {{ return({
    'settings': adapter.sink_settings(),
    'lease': tree.lease,
    'after_ts': range.after_ts,
    'up_to_ts': range.up_to_ts,
    'takes_late_rows': tojson(range.late.decision == 'send'),
    'position': tojson({'batch_id': range.up_to_batch, 'log_row_count': range.log_row_count}),
    'schemas': schemas,
    'ddl': tojson(tidemark.sink_ddl_places(range))
  }) }}
{% endmacro %}


{# A tree that is behind what this warehouse has sent to it has lost its `metadata`, or everything: a run would write rows a second time. #}
{% macro refuse_lost_tree(checkpoint_ts, sent_ts) %}
  {%- if checkpoint_ts < sent_ts -%}
    {% do exceptions.raise_compiler_error(
      tidemark.changefeed_setting('sink_place') ~ ': the checkpoint of the tree is ' ~ checkpoint_ts ~ ', but sink_checkpoints says that rows were sent up to ' ~ sent_ts
      ~ ': its metadata went back, or the tree is gone. Nothing was written: restore the tree, or write everything to another prefix, or, into an emptied one, with another changefeed_id'
    ) %}
  {%- endif -%}
{% endmacro %}


{# The columns besides the table's name and version that tell one folder, or series of files, from another. #}
{% macro folder_columns() %}
  {%- set columns = ['target_schema_name', 'target_table_name', 'table_info_version'] -%}
  {%- if tidemark.changefeed_setting('table_id_paths') -%}
    {% do columns.append('physical_table_id') %}
  {%- elif tidemark.changefeed_setting('partition_folders') -%}
    {#- the id of a partition is not that of its table -#}
    {% do columns.append('nullif(physical_table_id, table_id)') %}
  {%- endif -%}
  {%- if tidemark.are_tables_split() -%}
    {% do columns.append('dispatcher_id') %}
  {%- endif -%}
  {{ return(columns | join(', ')) }}
{% endmacro %}


{# Into how many tasks the folders of a tree are divided: enough that a large folder does not have to wait for others. #}
{% macro folder_tasks() %}
  {%- if not execute -%}
    {{ return(16) }}
  {%- endif -%}
  {{ return([run_query('set spark.sql.shuffle.partitions')[0][1] | int, 16] | max) }}
{% endmacro %}
