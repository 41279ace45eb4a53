{#
  A model whose rows go out through a data source instead of into a table: a temporary view over the source, named for this invocation, and an insert into it. Plain
  SQL, the same with every adapter. What is atomic is up to the source; dbt keeps no relation.

  sink_format: name of the data source. sink_options: its options.
#}
{% materialization sink, default %}
  {%- set format = config.require('sink_format') -%}
  {{ run_hooks(pre_hooks) }}
  {%- set view = tidemark.source_view('sink_' ~ model['alias'], format, config.get('sink_options', {})) -%}
  {%- call statement('main') -%}
    insert into {{ view }} {{ compiled_code }}
  {%- endcall -%}
  {% do run_query('drop view if exists ' ~ view) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': []}) }}
{% endmaterialization %}
