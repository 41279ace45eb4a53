{#
  A table whose rows are written by the tasks of a data source instead of Spark: the model selects what is to be decoded, in batches. New batches become visible together, when
  the catalog learns of their partitions; the first run and a full refresh build a new version of the table beside and switch to it.

  decoder: name of the data source. Without options it is an empty relation of the table's columns; with the options path, batches and those of decoder_options (Jinja, rendered
  when the model runs, to JSON) it takes what the model selects and writes folders {path}/batch_id=…
#}
{% materialization decoded, default %}
  {%- set decoder = config.require('decoder') -%}
  {{ run_hooks(pre_hooks) }}
  {%- set current = tidemark.stored_table(this) if tidemark.is_kept() else none -%}
  {%- set table = current or tidemark.new_table(this) -%}
  {%- if current is none -%}
    {%- set columns = tidemark.source_view('columns_' ~ model['alias'], decoder, {}) -%}
    {% do run_query(
      'create table ' ~ table ~ ' using parquet partitioned by (batch_id) as select *, cast(0 as bigint) as batch_id from ' ~ columns ~ ' where false'
    ) %}
    {% do run_query('drop view if exists ' ~ columns) %}
  {%- elif target.type == 'tidemark' -%}
    {#- its columns are those of the decoder, which another version may have changed -#}
    {%- set columns = adapter.get_columns_in_relation(current) | map(attribute='name') | list -%}
    {% do tidemark_check_columns(columns, adapter.source_columns(decoder) + ['batch_id']) %}
  {%- endif -%}
  {%- set batches = tidemark.new_batches() -%}
  {%- if batches and not (current and tidemark.has_no_rows_to_read()) -%}
    {%- set options = fromjson(render(config.require('decoder_options'))) -%}
    {% do options.update({'path': tidemark.table_location(table), 'batches': tojson(batches)}) %}
    {%- set view = tidemark.source_view('decoded_' ~ model['alias'], decoder, options) -%}
    {%- call statement('main') -%}
      insert into {{ view }} {{ compiled_code }}
    {%- endcall -%}
    {% do run_query('drop view if exists ' ~ view) %}
  {%- else -%}
    {%- call noop_statement('main', 'nothing new') -%}{%- endcall -%}
  {%- endif -%}
  {%- if batches -%}
    {% do run_query(tidemark.add_batches_sql(table, batches)) %}
  {%- endif -%}
  {%- if current is none -%}
    {% do tidemark.show_table(this, table) %}
  {%- endif -%}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [this]}) }}
{% endmaterialization %}


{# Where the files of a table are. #}
{% macro table_location(table) %}
  {%- for row in run_query('describe table extended ' ~ table) -%}
    {%- if row[0] == 'Location' -%}
      {{ return(row[1]) }}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}


{# The table to build a model in, and how it is shown under the model's name once it is complete. With a stock adapter both are the same. #}
{% macro new_table(relation) %}
  {%- if target.type == 'tidemark' -%}
    {{ return(tidemark_new_version(relation)) }}
  {%- endif -%}
  {% do run_query('drop table if exists ' ~ relation) %}
  {{ return(relation) }}
{% endmacro %}


{% macro show_table(relation, table) %}
  {%- if target.type == 'tidemark' -%}
    {% do tidemark_switch_to(relation.incorporate(type='view'), table) %}
  {%- endif -%}
{% endmacro %}
