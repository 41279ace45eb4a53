{#
  New rows arrive as whole partitions, which become visible together when the catalog learns of them; a partition that is written again is
  replaced. With `partition_by`, the model says which partition a row belongs to. Without it, every run appends one hidden partition.
  With `unique_key`, which needs `file_format: delta`, rows are merged into the table by one statement.
  With `on_schema_change: append_new_columns`, columns that a table does not have yet are added to it, null in its rows.
  The first run and a full refresh build a new version beside and switch to it.
#}
{% materialization incremental, adapter='tidemark', supported_languages=['sql', 'python'] %}
  {%- set unique_key = config.get('unique_key') -%}
  {%- if unique_key and config.get('file_format') != 'delta' -%}
    {% do exceptions.raise_compiler_error(
      'model ' ~ model['name'] ~ ' sets unique_key, which needs a table format with MERGE (file_format: delta); on parquet use partition_by, and replace whole partitions'
    ) %}
  {%- endif -%}
  {%- if config.get('file_format') == 'iceberg' -%}
    {% do exceptions.raise_compiler_error(
      'model ' ~ model['name'] ~ ' is incremental with file_format: iceberg, and this adapter adds to tables of parquet and Delta only; make it a table, or use one of these formats'
    ) %}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set run_column = '_tidemark_run' -%}
  {%- set partition_by = config.get('partition_by') -%}
  {%- set partition_by = [partition_by] if partition_by is string else partition_by -%}
  {%- set hidden_columns = [] if partition_by or unique_key else [run_column] -%}
  {%- set partition_columns = partition_by or hidden_columns -%}
  {{ run_hooks(pre_hooks) }}

  {%- set current = none if should_full_refresh() else tidemark_current_version(target_relation) -%}
  {%- if model['language'] == 'python' -%}
    {# dbt runs Python only from the materialization itself #}
    {%- call statement('main', language='python') -%}{{ tidemark_python_model(compiled_code) }}{%- endcall -%}
  {%- endif -%}
  {%- set select = tidemark_model_select() -%}
  {%- if not partition_by and not unique_key -%}
    {%- set select = "select *, '" ~ adapter.run_id() ~ "' as " ~ run_column ~ ' from (' ~ select ~ ')' -%}
  {%- endif -%}

  {%- if current is none -%}
    {%- set version = tidemark_new_version(target_relation) -%}
    {% do tidemark_run_main(tidemark_create_version_sql(version, select, partition_columns), version) %}
    {% do tidemark_switch_to(target_relation, version, hidden_columns) %}
  {%- else -%}
    {%- if unique_key and not tidemark_is_delta(current) -%}
      {% do exceptions.raise_compiler_error(
        'model ' ~ model['name'] ~ ' has file_format delta, its table has another; run it once with --full-refresh'
      ) %}
    {%- endif -%}
    {%- set view = 'tidemark_rows_' ~ model['alias'] ~ '_' ~ invocation_id | replace('-', '_') -%}
    {%- set offered = adapter.prepared_view(select, view) -%}
    {%- if config.get('on_schema_change') == 'append_new_columns' -%}
      {% do tidemark_append_columns(target_relation, current, view, hidden_columns) %}
    {%- endif -%}
    {%- set columns = [] -%}
    {%- for column in adapter.get_columns_in_relation(current) if column.name not in columns -%}{% do columns.append(column.name) %}{%- endfor -%}
    {% do tidemark_check_columns(columns, offered) %}
    {%- if unique_key -%}
      {% do tidemark_run_main(get_merge_sql(current, view, unique_key, none), current) %}
    {%- else -%}
      {% do tidemark_run_main(
        'insert overwrite table ' ~ current ~ ' partition (' ~ tidemark_quoted_list(partition_columns) ~ ') select '
        ~ tidemark_quoted_list(columns) ~ ' from ' ~ view,
        current
      ) %}
    {%- endif -%}
    {% do adapter.drop_prepared_view(view) %}
  {%- endif -%}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#
  Adds the columns of a view that a relation does not show to the table behind it. After a run that died between
  the two statements, only the second is left to do.
#}
{% macro tidemark_append_columns(relation, table, view, hidden_columns) %}
  {%- set shown = adapter.get_columns_in_relation(relation) | map(attribute='name') | list + hidden_columns -%}
  {%- set stored, missing, added = adapter.get_columns_in_relation(table) | map(attribute='name') | list, [], [] -%}
  {%- for row in run_query('describe ' ~ view) if row[0] not in shown -%}
    {% do missing.append(row[0]) %}
    {%- if row[0] not in stored -%}{% do added.append(adapter.quote(row[0]) ~ ' ' ~ row[1]) %}{%- endif -%}
  {%- endfor -%}
  {%- if added -%}
    {% do run_query('alter table ' ~ table ~ ' add columns (' ~ added | join(', ') ~ ')') %}
  {%- endif -%}
  {%- if missing -%}
    {% do tidemark_switch_to(relation, table, hidden_columns) %}
  {%- endif -%}
{% endmacro %}


{# dbt's own looks for a table; ours are views over the version that is complete. #}
{% macro is_incremental() %}
  {%- if not execute -%}
    {{ return(false) }}
  {%- endif -%}
  {%- set relation = adapter.get_relation(this.database, this.schema, this.table) -%}
  {{ return(relation is not none and model.config.materialized == 'incremental' and not should_full_refresh()) }}
{% endmacro %}


{% macro tidemark_is_delta(table) %}
  {%- for row in run_query('describe table extended ' ~ table) if row[0] == 'Provider' -%}
    {{ return(row[1] == 'delta') }}
  {%- endfor -%}
{% endmacro %}


{# dbt-spark's own wants a relation to merge from; this is a temporary view. #}
{% macro tidemark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) %}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on
    {% for column in ([unique_key] if unique_key is string else unique_key) -%}
      DBT_INTERNAL_SOURCE.{{ adapter.quote(column) }} = DBT_INTERNAL_DEST.{{ adapter.quote(column) }}
      {%- if not loop.last %} and {% endif %}
    {%- endfor %}
  when matched then update set *
  when not matched then insert *
{% endmacro %}
