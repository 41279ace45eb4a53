{#
  A table that grows by batches: a run adds the rows of the batches that the model has not handled yet, and notes them as handled, also where they hold nothing for it. A batch that
  is written again, because a run died, replaces what that run left. What is atomic is said in macros/kept; what a model keeps, in one property of its relation (kept.sql).

  keeps: last_batch    each batch brings all rows, and those of the batches before go
  takes_over: true     the query has the rows of the parts of parts_to_take_over in it, which go
  rows_from            the model from whose rows every row comes: without new ones there, this one has nothing to do
  decoder              name of a data source whose tasks write the rows themselves; the query gives what they decode. Without options the source is an empty relation of the
                       table's columns; with the options path and those of decoder_options (Jinja, rendered when the model runs, to JSON) it writes files below path
#}
{% materialization batched, default %}
  {{ run_hooks(pre_hooks) }}
  {%- set kept = tidemark.kept(this) if tidemark.is_kept() else none -%}
  {% do tidemark.check_format(kept) %}
  {% do tidemark.check_plan(kept) %}
  {%- if kept is not none and tidemark.has_nothing_new() -%}
    {%- call noop_statement('main', 'nothing new') -%}{%- endcall -%}
    {%- set known = dict(kept, batch=tidemark.current_batch()) if model.name != 'log_segments' and tidemark.new_batches() else kept -%}
    {#- the view is behind where a run died between the rows and the note -#}
    {%- if known != fromjson(tidemark.relation_property(this, 'tidemark.kept')) -%}
      {% do tidemark.note_kept(this, known) %}
    {%- endif -%}
  {%- else -%}
    {% do tidemark.write_batches(kept, tidemark.batch_after_this_run()) %}
  {%- endif -%}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [this.incorporate(type='view')]}) }}
{% endmaterialization %}


{# A warehouse has one format, also where a run has nothing to write. #}
{% macro check_format(kept) %}
  {%- if config.get('file_format') -%}
    {% do exceptions.raise_compiler_error(
      model.name ~ ' sets file_format, and a table that grows by batches has the format of the whole warehouse: set the var table_format in its place'
    ) %}
  {%- endif -%}
  {%- if kept is not none and kept.format != var('table_format') -%}
    {% do exceptions.raise_compiler_error(
      model.name ~ ' is kept as ' ~ kept.format ~ ', and table_format is ' ~ var('table_format') ~ ': run `tidemark upgrade` once, which rewrites the tables (docs/operations.md)'
    ) %}
  {%- endif -%}
{% endmacro %}


{#
  Batches have the numbers of a plan of the logs. A model that counts those of another plan, because a rebuild from the logs died before its turn, would take new batches for handled
  ones. One that is built anew needs all that its parents once had.
#}
{% macro check_plan(kept) %}
  {%- if model.name == 'log_segments' -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set again = "dbt run --full-refresh --vars 'rebuild_from_logs: true'" -%}
  {%- if kept is not none and (kept.get('plan', tidemark.log_plan_id()) != tidemark.log_plan_id() or kept.batch > tidemark.current_batch()) -%}
    {% do exceptions.raise_compiler_error(
      model.name ~ ' has handled ' ~ kept.batch ~ ' batches of an earlier plan of the logs, and log_segments was planned anew since: a rebuild did not come to its end. '
      ~ 'Nothing was changed; rebuild all: ' ~ again
    ) %}
  {%- endif -%}
  {%- for parent in graph.nodes[model.unique_id].depends_on.nodes
    if kept is none and graph.nodes[parent].config.materialized == 'batched' and graph.nodes[parent].name != 'int_row_changes' -%}
    {%- set known = tidemark.kept(ref(graph.nodes[parent].name)) -%}
    {%- if known is not none and (known.get('cleaned') or known.get('cleaning')) -%}
      {% do exceptions.raise_compiler_error(
        model.name ~ ' cannot be built again from ' ~ graph.nodes[parent].name ~ ', of which `tidemark clean` has removed old rows. If all logs are still there: ' ~ again
      ) %}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}


{# What a model keeps before its first write, in a build of this name. #}
{% macro newly_kept(table_format, built) %}
  {%- set plan = {} if model.name == 'log_segments' or model.config.materialized == 'appended' else {'plan': tidemark.log_plan_id()} -%}
  {{ return(dict(tidemark.nothing_kept(), format=table_format, built=built, **plan)) }}
{% endmacro %}


{# Adds the rows of the calling model to what is kept, which then goes up to this batch; none: the table is built from the beginning. #}
{% macro write_batches(kept, batch) %}
  {%- set is_new, table_format = kept is none, var('table_format') -%}
  {%- if table_format != 'parquet' -%}
    {{ return(tidemark.write_in_format(kept, batch, table_format)) }}
  {%- endif -%}
  {%- set table = tidemark.new_store_table(this) if is_new else tidemark.stored_table(this) -%}
  {%- set kept = kept or tidemark.newly_kept('parquet', table.identifier) -%}
  {%- set part = 1 if is_new else tidemark.begin_part(table, kept) -%}
  {%- if config.get('decoder') -%}
    {% do tidemark.decode_part(table, part, is_new) %}
  {%- else -%}
    {% do tidemark.select_part(table, part, is_new) %}
  {%- endif -%}
  {%- if config.get('keeps') == 'last_batch' -%}
    {%- set replaced = kept.parts | map(attribute=0) | list -%}
  {%- else -%}
    {%- set replaced = tidemark.parts_to_take_over() if config.get('takes_over') else [] -%}
  {%- endif -%}
  {%- set written = tidemark.with_part(kept, table, part, replaced) -%}
  {%- if not config.get('takes_over') -%}
    {%- set written = tidemark.merged_parts(table, written) -%}
  {%- endif -%}
  {#- a plan of the logs that holds nothing is no batch -#}
  {%- set is_batch = model.name != 'log_segments' or written.changes > kept.changes -%}
  {% do tidemark.show_parts(this, table, dict(
    written,
    batch=batch if is_batch else kept.batch,
    rows_of=batch if written.written else kept.rows_of
  )) %}
  {%- if is_new -%}
    {% do tidemark.drop_leftovers(this, table) %}
  {%- endif -%}
{% endmacro %}


{# Runs the model's query into a part of its table. #}
{% macro select_part(table, part, is_new) %}
  {%- set select = tidemark.model_select() -%}
  {%- if is_new -%}
    {% do tidemark.announce_change(table) %}
    {%- call statement('main') -%}
      create table {{ table }} using parquet partitioned by (part) as select *, cast({{ part }} as bigint) as part from ({{ select }})
    {%- endcall -%}
  {%- else -%}
    {%- set view = tidemark.view_name('rows_of_' ~ model['alias']) -%}
    {%- set offered = tidemark.prepared_view(view, select) -%}
    {% do tidemark.check_columns(table, offered) %}
    {% do tidemark.announce_change(table) %}
    {%- call statement('main') -%}
      {{ tidemark.insert_part_sql(table, part, tidemark.columns_of_parts(table), 'from ' ~ view) }}
    {%- endcall -%}
    {% do tidemark.drop_prepared_view(view) %}
  {%- endif -%}
{% endmacro %}


{# Lets the tasks of a data source write a part of the model's table. #}
{% macro decode_part(table, part, is_new) %}
  {%- set decoder = config.require('decoder') -%}
  {%- if is_new -%}
    {%- set columns = tidemark.source_view('columns_' ~ model['alias'], decoder, {}) -%}
    {% do tidemark.run_change(
      table,
      'create table ' ~ table ~ ' using parquet partitioned by (part) as select *, cast(0 as bigint) as batch_id, cast(0 as bigint) as part from ' ~ columns ~ ' where false'
    ) %}
    {% do tidemark.drop_source_view(columns) %}
  {%- elif target.type == 'tidemark' -%}
    {#- another version of the decoder may have other columns -#}
    {% do tidemark.check_columns(table, adapter.source_columns(decoder) + ['batch_id']) %}
  {%- endif -%}
  {%- if tidemark.new_batches() -%}
    {%- set options = fromjson(render(config.require('decoder_options'))) -%}
    {%- set view = tidemark.source_view(
      'decoded_' ~ model['alias'], decoder, dict(options, path=tidemark.table_location(table) ~ '/part=' ~ part)
    ) -%}
    {% do tidemark.announce_change(none) %}
    {%- call statement('main') -%}
      insert into {{ view }} {{ compiled_code }}
    {%- endcall -%}
    {% do tidemark.drop_source_view(view) %}
    {% do tidemark.run_change(table, 'alter table ' ~ table ~ ' add if not exists partition (part = ' ~ part ~ ')') %}
  {%- else -%}
    {%- call noop_statement('main', 'nothing new') -%}{%- endcall -%}
  {%- endif -%}
{% endmacro %}


{# The model as a select statement, with the columns of its contract if it has one. #}
{% macro model_select() %}
  {%- if config.get('contract').enforced -%}
    {% do get_assert_columns_equivalent(compiled_code) %}
    {{ return(get_select_subquery(compiled_code)) }}
  {%- endif -%}
  {{ return(compiled_code) }}
{% endmacro %}


{# A temporary view of a query, which Spark then does not read twice. Its columns. #}
{% macro prepared_view(view, select) %}
  {%- if target.type == 'tidemark' -%}
    {{ return(adapter.prepared_view(select, view)) }}
  {%- endif -%}
  {% do run_query('create or replace temporary view ' ~ view ~ ' as ' ~ select) %}
  {{ return(run_query('describe ' ~ view).columns[0].values() | list) }}
{% endmacro %}


{% macro drop_prepared_view(view) %}
  {%- if target.type == 'tidemark' -%}
    {% do adapter.drop_prepared_view(view) %}
  {%- else -%}
    {% do run_query('drop view if exists ' ~ view) %}
  {%- endif -%}
{% endmacro %}


{# What is added to a table must have its columns; the table may have been built from other code. #}
{% macro check_columns(table, offered) %}
  {%- set columns = [] -%}
  {%- for column in adapter.get_columns_in_relation(table) if column.name not in columns and column.name != 'part' -%}
    {% do columns.append(column.name) %}
  {%- endfor -%}
  {%- if columns | sort != offered | sort -%}
    {% do exceptions.raise_compiler_error(
      'model ' ~ model['name'] ~ ' has columns ' ~ (offered | sort | join(', ')) ~ ', its table has ' ~ (columns | sort | join(', '))
      ~ '; run it once with --full-refresh'
    ) %}
  {%- endif -%}
{% endmacro %}


{# Where the files of a table are. #}
{% macro table_location(table) %}
  {%- for row in run_query('describe table extended ' ~ table) if row[0] == 'Location' -%}
    {{ return(row[1]) }}
  {%- endfor -%}
{% endmacro %}
