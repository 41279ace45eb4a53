{#
  A model whose rows go out through a data source instead of into a table: a temporary view over the source, named for this invocation, and an insert into it. Plain
  SQL, the same with every adapter. What is atomic is up to the source; dbt keeps no relation.

  sink_format: name of the data source.
  sink_options: its options. As a text it is, like a hook, Jinja that is rendered when the model runs, here to JSON; null means that there is nothing to send: no row is
  read, and hooks do not run.
#}
{% materialization sink, default %}
  {%- set format = config.require('sink_format') -%}
  {%- set options = config.get('sink_options', {}) -%}
  {%- if options is string -%}
    {%- set options = fromjson(render(options)) -%}
  {%- endif -%}
  {%- if options is none -%}
    {%- call noop_statement('main', tidemark.nothing_sent()) -%}{%- endcall -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {{ run_hooks(pre_hooks) }}
  {%- set view = tidemark.source_view('sink_' ~ model['alias'], format, options) -%}
  {% do tidemark.announce_change(none) %}
  {%- call statement('main') -%}
    insert into {{ view }} {{ compiled_code }}
  {%- endcall -%}
  {% do tidemark.drop_source_view(view) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': []}) }}
{% endmaterialization %}
