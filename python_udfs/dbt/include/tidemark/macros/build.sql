{# The temporary view in which a Python model leaves its result. #}
{% macro tidemark_python_view() %}
  {{ return('tidemark_model_' ~ model['alias'] ~ '_' ~ invocation_id | replace('-', '_')) }}
{% endmacro %}


{# The model as a select statement; a Python model has run before. #}
{% macro tidemark_model_select() %}
  {%- set select = 'select * from ' ~ tidemark_python_view() if model['language'] == 'python' else compiled_code -%}
  {%- if config.get('contract').enforced -%}
    {% do get_assert_columns_equivalent(select) %}
    {%- set select = get_select_subquery(select) -%}
  {%- endif -%}
  {{ return(select) }}
{% endmacro %}


{# dbt's own runs the query, with no rows; Spark knows the columns once it has read it. #}
{% macro tidemark__get_columns_in_query(select_sql) %}
  {{ return(get_column_schema_from_query(select_sql) | map(attribute='name') | list) }}
{% endmacro %}


{% macro tidemark_python_model(compiled_code) %}
{{ compiled_code }}
dbt = dbtObj(spark.table)
df = model(dbt, spark)
if not hasattr(df, "createOrReplaceTempView"):
    df = df.to_spark() if hasattr(df, "to_spark") else spark.createDataFrame(df)
df.createOrReplaceTempView("{{ tidemark_python_view() }}")
{% endmacro %}


{# Runs a statement as the model's main one, unless a Python model already was. It changes this table and no other. #}
{% macro tidemark_run_main(sql, table, is_main=true) %}
  {% do adapter.announce_change(table) %}
  {%- if model['language'] == 'python' or not is_main -%}
    {% do run_query(sql) %}
  {%- else -%}
    {%- call statement('main') -%}{{ sql }}{%- endcall -%}
  {%- endif -%}
{% endmacro %}


{% macro tidemark_create_version_sql(version, select, partition_by=[]) %}
  create table {{ version }}
  using {{ config.get('file_format', 'parquet') }}
  {% if partition_by %}partitioned by ({{ tidemark_quoted_list(partition_by) }}){% endif %}
  as {{ select }}
{% endmacro %}


{# What is added to a table must have its columns; it may have been built from other code. #}
{% macro tidemark_check_columns(columns, offered) %}
  {%- if columns | sort != offered | sort -%}
    {% do exceptions.raise_compiler_error(
      'model ' ~ model['name'] ~ ' has columns ' ~ (offered | sort | join(', ')) ~ ', its table has ' ~ (columns | sort | join(', '))
      ~ '; run it once with --full-refresh'
    ) %}
  {%- endif -%}
{% endmacro %}
