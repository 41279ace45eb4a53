{#
  What `dbt show` selects. Of a model that adds to a table it is the stored rows: dbt's own runs the model's query
  again, which gives what the next run would add, mostly nothing. Of a sink it is what the next run sends.
#}
{% macro get_show_sql(compiled_code, sql_header, limit) %}
  {%- set sql = compiled_code -%}
  {%- if model.resource_type == 'model' and model.config.materialized in ('incremental', 'decoded') -%}
    {%- if load_relation(this) is none -%}
      {% do exceptions.raise_compiler_error(
        model.name ~ ' has no rows to show, it is not built yet: run `dbt run --select +' ~ model.name ~ '` first'
      ) %}
    {%- endif -%}
    {%- set sql = 'select * from ' ~ this -%}
  {%- elif model.resource_type == 'model' and model.config.materialized == 'sink'
    and not run_query('select 1 from (' ~ sql ~ ') limit 1') | length -%}
    {%- set note = model.name ~ ' has nothing to send now; sink_checkpoints lists what was sent' -%}
    {%- set sql = 'select ' ~ tidemark.text_literal(note) ~ ' as note' -%}
  {%- endif -%}
  {%- if sql_header is not none -%}
    {{ sql_header }}
  {%- endif %}
  {{ get_limit_subquery_sql(sql, limit) }}
{% endmacro %}
