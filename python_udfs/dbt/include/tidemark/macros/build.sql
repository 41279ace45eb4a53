{# The model as a select statement. A Python model runs first and leaves its result in a temporary view. #}
{% macro tidemark_model_select() %}
  {%- if model['language'] == 'python' -%}
    {%- set view = 'tidemark_model_' ~ model['alias'] ~ '_' ~ invocation_id | replace('-', '_') -%}
    {%- call statement('main', language='python') -%}
      {{ tidemark_python_model(compiled_code, view) }}
    {%- endcall -%}
    {%- set select = 'select * from ' ~ view -%}
  {%- else -%}
    {%- set select = compiled_code -%}
  {%- endif -%}
  {%- if config.get('contract').enforced -%}
    {% do get_assert_columns_equivalent(select) %}
    {%- set select = get_select_subquery(select) -%}
  {%- endif -%}
  {{ return(select) }}
{% endmacro %}


{% macro tidemark_python_model(compiled_code, view) %}
{{ compiled_code }}
dbt = dbtObj(spark.table)
df = model(dbt, spark)
if not hasattr(df, "createOrReplaceTempView"):
    df = df.to_spark() if hasattr(df, "to_spark") else spark.createDataFrame(df)
df.createOrReplaceTempView("{{ view }}")
{% endmacro %}


{# Runs a statement as the model's main one, unless a Python model already was. #}
{% macro tidemark_run_main(sql) %}
  {%- if model['language'] == 'python' -%}
    {% do run_query(sql) %}
  {%- else -%}
    {%- call statement('main') -%}{{ sql }}{%- endcall -%}
  {%- endif -%}
{% endmacro %}


{% macro tidemark_create_version_sql(version, select, partition_by=[]) %}
  create table {{ version }}
  using parquet
  {% if partition_by %}partitioned by ({{ tidemark_quoted_list(partition_by) }}){% endif %}
  as {{ select }}
{% endmacro %}
