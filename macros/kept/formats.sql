{#
  How rows are kept in a table format with transactions, Delta or Iceberg: in one table, by the format's own statements. The model's name is a view over it that stays as it is; what is
  kept is noted there, after the rows. A run that died in between has left rows that are not noted: models read their own only up to the last batch that is (tidemark.last_batch), and
  each statement here gives the same rows the second time. A table that each batch replaces has lost what it was made from, so there the number is part of the same transaction.

    delta      <schema>_store.<model> in Spark's own catalog
    iceberg    <schema>.<model> in the catalog that the var `iceberg_catalog` names
#}

{# The name of the table that holds the rows of a model, which a build from the beginning makes. #}
{% macro format_table(relation, table_format) %}
  {%- set names = [var('iceberg_catalog'), relation.schema, relation.identifier] if table_format == 'iceberg' else [relation.schema ~ '_store', relation.identifier] -%}
  {{ return(names | map('string') | join('.')) }}
{% endmacro %}


{# Adds the rows of the calling model to its table; see write_batches. #}
{% macro write_in_format(kept, batch, table_format) %}
  {%- set table, is_new, is_replaced = tidemark.format_table(this, table_format), kept is none, config.get('keeps') == 'last_batch' -%}
  {%- set kept = kept or tidemark.newly_kept(table_format, this.identifier ~ '__' ~ run_started_at.strftime('%Y%m%d%H%M%S%f')) -%}
  {%- if is_new -%}{% do tidemark.begin_format_table(table, kept) %}{%- endif -%}
  {%- set replaced = dict(kept, batch=batch, rows_of=batch, changes=kept.changes + 1, in_table=true) -%}
  {%- if config.get('decoder') -%}
    {%- set select = tidemark.decoded_select() -%}
  {%- else -%}
    {%- set select = tidemark.model_select() -%}
  {%- endif -%}
  {%- if is_new -%}
    {% do tidemark.create_format_table(this, table, table_format, select, replaced if is_replaced) %}
  {%- else -%}
    {%- set view = tidemark.view_name('rows_of_' ~ model['alias']) -%}
    {% do tidemark.check_columns(this, tidemark.prepared_view(view, select)) %}
    {%- set in_order = 'select ' ~ tidemark.columns_of_parts(this) ~ ' from ' ~ view -%}
    {%- if is_replaced -%}
      {% do tidemark.create_format_table(this, table, table_format, in_order, replaced) %}
    {%- else -%}
      {% do tidemark.announce_change(none) %}
      {%- call statement('main') -%}
        {%- if config.get('merged_by') -%}
          {{ tidemark.merge_sql(table, select, config.get('merged_by')) }}
        {%- else -%}
          insert into {{ table }} replace where batch_id > {{ kept.batch }} {{ in_order }}
        {%- endif -%}
      {%- endcall -%}
    {%- endif -%}
    {% do tidemark.drop_prepared_view(view) %}
  {%- endif -%}
  {%- if is_replaced -%}
    {%- set kept = replaced -%}
  {%- else -%}
    {%- set has_rows = run_query('select 1 from ' ~ table ~ (' where batch_id > ' ~ kept.batch if not is_new else '') ~ ' limit 1') | length > 0 -%}
    {%- set is_batch = model.name != 'log_segments' or has_rows -%}
    {%- set kept = dict(
      kept,
      batch=batch if is_batch else kept.batch,
      rows_of=batch if has_rows else kept.rows_of,
      changes=kept.changes + (1 if has_rows else 0)
    ) -%}
  {%- endif -%}
  {%- if is_new -%}
    {% do tidemark.show_format_table(this, table, kept) %}
  {%- else -%}
    {% do tidemark.note_kept(this, kept) %}
    {%- if has_rows -%}{% do tidemark.compact(table, kept) %}{%- endif -%}
  {%- endif -%}
  {%- if is_new or config.get('decoder') -%}
    {% do tidemark.drop_leftovers(this, table) %}
  {%- endif -%}
{% endmacro %}


{#
  Before a build from the beginning replaces the rows of a table: its name says that nothing is kept of the new build yet, so that a run after one that died here does not take the new
  rows for the old. A table that somebody else has made is left alone.
#}
{% macro begin_format_table(table, kept) %}
  {%- if tidemark.is_built([this]) and tidemark.relation_property(this, 'tidemark.table') == table -%}
    {% do tidemark.note_kept(this, kept) %}
  {%- elif kept.format == 'iceberg' -%}
    {%- set names = table.rpartition('.') -%}
    {% do run_query('create schema if not exists ' ~ names[0]) %}
    {%- for row in run_query('show tables in ' ~ names[0] ~ " like '" ~ names[2] ~ "'") if row[1] == names[2] -%}
      {%- set owners = [] -%}
      {%- for property in run_query('show tblproperties ' ~ table) if property[0] == 'tidemark.owner' -%}{% do owners.append(property[1]) %}{%- endfor -%}
      {%- if owners != [tidemark.owner()] -%}
        {% do exceptions.raise_compiler_error(
          table ~ ' is there already, and ' ~ ('belongs to ' ~ owners[0] if owners else 'was not made by Tidemark') ~ ': it was left as it is. Each state folder needs a schema or an Iceberg '
          ~ 'catalog of its own (docs/table-formats.md); drop the table if nobody needs it'
        ) %}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}


{# Whose the tables of a catalog are that several may share. #}
{% macro owner() %}
  {{ return(adapter.state_dir() if target.type == 'tidemark' else target.name ~ ' ' ~ target.schema) }}
{% endmacro %}


{# Makes a table of a format, or replaces it, by one statement; with `kept`, what is kept is part of it. `statement_name`: main is what a model does. #}
{% macro create_format_table(relation, table, table_format, select, kept=none, statement_name='main') %}
  {%- set properties = ["'tidemark.owner' = " ~ tidemark.text_literal(tidemark.owner())] -%}
  {%- if kept -%}{% do properties.append("'tidemark.kept' = " ~ tidemark.text_literal(tojson(kept))) %}{%- endif -%}
  {%- if table_format == 'delta' -%}
    {% do tidemark.provide_store(relation) %}
    {% do tidemark.announce_change(api.Relation.create(schema=relation.schema ~ '_store', identifier=relation.identifier)) %}
  {%- else -%}
    {% do tidemark.announce_change(none) %}
    {% do run_query('create schema if not exists ' ~ table.rpartition('.')[0]) %}
    {% do tidemark.announce_change(none) %}
  {%- endif -%}
  {%- call statement(statement_name) -%}
    create or replace table {{ table }} using {{ table_format }} tblproperties ({{ properties | join(', ') }}) as {{ select }}
  {%- endcall -%}
{% endmacro %}


{# A newer write replaces the one that is there; an older or repeated one changes nothing. The query stands in the statement: Spark 4.1 cannot plan a MERGE from a prepared view of an Iceberg table. #}
{% macro merge_sql(table, select, key_columns) %}
  {%- set conditions = [] -%}
  {%- for column in key_columns -%}
    {% do conditions.append('written.' ~ adapter.quote(column) ~ ' = kept.' ~ adapter.quote(column)) %}
  {%- endfor -%}
  {{ return(
    'merge into ' ~ table ~ ' as kept using (' ~ select ~ ') as written on ' ~ conditions | join(' and ')
    ~ ' when matched and written.write_order > kept.write_order then update set * when not matched then insert *'
  ) }}
{% endmacro %}


{# Shows a table of a format under the model's name. #}
{% macro show_format_table(relation, table, kept) %}
  {%- set existing = load_relation(relation) -%}
  {%- if existing is not none and not existing.is_view -%}
    {% do adapter.drop_relation(existing) %}
  {%- endif -%}
  {% do tidemark.run_change(
    relation,
    'create or replace view ' ~ relation ~ " tblproperties ('tidemark.table' = '" ~ table ~ "', 'tidemark.kept' = " ~ tidemark.text_literal(tojson(kept))
    ~ ') as select * from ' ~ table
  ) %}
{% endmacro %}


{# Every eighth write merges the small files of a table. #}
{% macro compact(table, kept) %}
  {%- if kept.changes % 8 == 0 and not kept.in_table -%}
    {% do tidemark.merge_small_files(table, kept, "options => map('min-input-files', '8')") %}
  {%- endif -%}
{% endmacro %}


{#
  Merges small files. Iceberg's `replace where` takes whole files, so rows of a batch that is noted never come into one file with rows that a run which died has left.

  options: of Iceberg's procedure.
#}
{% macro merge_small_files(table, kept, options=none) %}
  {% do tidemark.announce_change(none) %}
  {%- if kept.format == 'delta' -%}
    {% do run_query('optimize ' ~ table) %}
  {%- else -%}
    {%- set names = (table | string).split('.', 1) -%}
    {%- set arguments = ["table => '" ~ names[1] ~ "'"] + ([options] if options else []) + (["where => 'batch_id <= " ~ kept.batch ~ "'"] if kept.batch else []) -%}
    {% do run_query('call ' ~ names[0] ~ '.system.rewrite_data_files(' ~ arguments | join(', ') ~ ')') %}
  {%- endif -%}
{% endmacro %}


{# Lets the tasks of the decoder write a table of files, and gives a query that reads it. The table goes with the leftovers when its rows are where they belong. #}
{% macro decoded_select() %}
  {%- set table = tidemark.new_store_table(this) -%}
  {% do tidemark.decode_part(table, 1, true) %}
  {{ return('select ' ~ tidemark.columns_of_parts(table) ~ ' from ' ~ table) }}
{% endmacro %}
