{#
  What `dbt show` selects: of a model that adds to a table the rows it has. dbt's own asks the model's query again, which gives what the next run would add: mostly nothing.
  Of a sink it is what the next run sends.
#}
{% macro get_show_sql(compiled_code, sql_header, limit) %}
  {%- set sql = compiled_code -%}
  {%- if model.resource_type == 'model' and model.config.materialized in ('incremental', 'decoded') -%}
    {%- if load_relation(this) is none -%}
      {% do exceptions.raise_compiler_error(model.name ~ ' has no rows to show, it is not built yet: run `dbt run --select +' ~ model.name ~ '` first') %}
    {%- endif -%}
    {%- set sql = 'select * from ' ~ this -%}
  {%- elif model.resource_type == 'model' and model.config.materialized == 'sink' and not run_query('select 1 from (' ~ sql ~ ') limit 1') | length -%}
    {%- set sql = 'select ' ~ tidemark.text_literal(model.name ~ ' has nothing to send now; sink_checkpoints lists what was sent') ~ ' as note' -%}
  {%- endif -%}
  {%- if sql_header is not none -%}
    {{ sql_header }}
  {%- endif %}
  {{ get_limit_subquery_sql(sql, limit) }}
{% endmacro %}
