{#
  What `dbt show` selects. Of a model that adds to a table it is the stored rows: dbt's own runs the model's query
  again, which gives what the next run would add, mostly nothing. Of a sink it is what the next run sends.

  dbt also selects the tests of the models that it is asked for, and runs them without showing them. One that reads a model that is not built yet must not fail the command.
#}
{% macro get_show_sql(compiled_code, sql_header, limit) %}
  {%- set sql = compiled_code -%}
  {%- if model.resource_type == 'model' and model.config.materialized in ('incremental', 'batched', 'appended') -%}
    {%- if load_relation(this) is none -%}
      {% do exceptions.raise_compiler_error(
        model.name ~ ' has no rows to show, it is not built yet: run `dbt run --select +' ~ model.name ~ '` first'
      ) %}
    {%- endif -%}
    {%- set sql = 'select * from ' ~ this -%}
  {%- elif model.resource_type == 'test' and tidemark.models_not_built(model) -%}
    {%- set note = model.name ~ ' waits for ' ~ tidemark.models_not_built(model) | join(', ') -%}
    {%- set sql = 'select ' ~ tidemark.text_literal(note) ~ ' as note' -%}
  {%- elif model.resource_type == 'model' and model.config.materialized == 'sink' and tidemark.models_not_built(model) -%}
    {% do exceptions.raise_compiler_error(
      model.name ~ ' has no rows to show, models that it reads are not built yet (' ~ tidemark.models_not_built(model) | join(', ') ~ '): run `dbt run --select +'
      ~ model.name ~ ' --exclude ' ~ model.name ~ '` first'
    ) %}
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


{# The models that a node reads and that are not there yet, by name. Sinks leave no relation behind. #}
{% macro models_not_built(node) %}
  {%- set names = [] -%}
  {%- for id in node.depends_on.nodes if graph.nodes[id].resource_type == 'model' and graph.nodes[id].config.materialized != 'sink' -%}
    {%- set read = graph.nodes[id] -%}
    {%- if adapter.get_relation(read.database, read.schema, read.alias) is none -%}
      {% do names.append(read.name) %}
    {%- endif -%}
  {%- endfor -%}
  {{ return(names) }}
{% endmacro %}
