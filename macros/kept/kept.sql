{#
  What is known of a model that grows by batches: one property of its relation, `tidemark.kept`.

    format    parquet, delta or iceberg
    built     names the build: one from the beginning has another
    plan      the build of log_segments whose batches are counted
    batch     the last batch that the model has handled, also if it held nothing for the model
    rows_of   the last batch that added rows
    changes   how often rows were added or removed: a table made from them is up to date while this number stays
    parts     where the rows are, oldest first: [part, bytes] (parquet only; parts.sql)
    left      parts that are shown no longer, which the next write drops
    written   bytes of the last write
    cleaned   [batch, commit ts] up to which `tidemark clean` has removed rows; not there before it has
    cleaning  the same, up to where it has begun to remove them (formats only)
    drops     a table that was copied to another format and is to be dropped (upgrade.sql)
    in_table  whether the table has the same property, written with its rows (formats.sql)
#}
{% macro kept(relation) %}
  {%- if not tidemark.is_built([relation]) -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set text = tidemark.relation_property(relation, 'tidemark.kept') -%}
  {%- if text is none -%}
    {% do exceptions.raise_compiler_error(
      relation ~ ' was built by an older version of Tidemark, which kept its rows in another way: run `tidemark upgrade` once (docs/operations.md)'
    ) %}
  {%- endif -%}
  {%- set kept = fromjson(text) -%}
  {{ return(tidemark.kept_in_table(relation, kept) if kept.in_table else kept) }}
{% endmacro %}


{# What is kept as the table says it, where the view is behind: a run has died between the rows and the note. #}
{% macro kept_in_table(relation, kept) %}
  {%- set question = 'kept in the table of ' ~ relation -%}
  {%- if target.type == 'tidemark' and adapter.remembered(question) == kept -%}
    {{ return(kept) }}
  {%- endif -%}
  {%- for row in run_query('show tblproperties ' ~ tidemark.stored_table(relation)) if row[0] == 'tidemark.kept' -%}
    {%- set found = fromjson(row[1]) -%}
    {%- if found.built == kept.built and found.batch > kept.batch -%}
      {{ return(found) }}
    {%- endif -%}
  {%- endfor -%}
  {%- if target.type == 'tidemark' -%}{% do adapter.remember(question, kept) %}{%- endif -%}
  {{ return(kept) }}
{% endmacro %}


{# What a model keeps before its first run. #}
{% macro nothing_kept() %}
  {{ return({'format': 'parquet', 'built': none, 'batch': 0, 'rows_of': 0, 'changes': 0, 'parts': [], 'left': [], 'written': 0, 'in_table': false}) }}
{% endmacro %}


{# Whether the calling model adds to what it has, and does not begin anew. #}
{% macro is_kept() %}
  {{ return(execute and load_relation(this) is not none and not should_full_refresh()) }}
{% endmacro %}


{# A property of a table or view; none where it does not have it, or is not there. #}
{% macro relation_property(relation, name) %}
  {%- if not tidemark.is_built([relation]) -%}
    {{ return(none) }}
  {%- elif target.type == 'tidemark' -%}
    {{ return(adapter.table_property(relation, name)) }}
  {%- endif -%}
  {%- for row in run_query('show tblproperties ' ~ relation) if row[0] == name -%}
    {{ return(row[1]) }}
  {%- endfor -%}
  {{ return(none) }}
{% endmacro %}


{# The table that holds the rows of a model; the model's name is a view over it. #}
{% macro stored_table(relation) %}
  {%- set table = tidemark.relation_property(relation, 'tidemark.table') -%}
  {%- if table -%}
    {{ return(table) }}
  {%- endif -%}
  {%- set version = tidemark.relation_property(relation, 'tidemark.version') -%}
  {{ return(api.Relation.create(schema=relation.schema ~ '_store', identifier=version, type='table') if version else relation) }}
{% endmacro %}


{# Adds the rows of a query to a model that is built, outside of its own run: to the checkpoints of sinks. Columns are taken by their names. #}
{% macro add_rows(relation, select) %}
  {%- if not execute -%}
    {{ return('') }}
  {%- endif -%}
  {%- set kept, table = tidemark.kept(relation), tidemark.stored_table(relation) -%}
  {%- if kept.format == 'parquet' -%}
    {% do tidemark.show_parts(relation, table, tidemark.write_part(table, kept, '*', 'from (' ~ select ~ ')')) %}
  {%- else -%}
    {#- noted first: a run that dies behind the rows would leave them unknown to what is made from them -#}
    {%- set kept = dict(kept, changes=kept.changes + 1) -%}
    {% do tidemark.note_kept(relation, kept) %}
    {% do tidemark.announce_change(none) %}
    {% do run_query('insert into ' ~ table ~ ' by name ' ~ select) %}
    {% do tidemark.compact(table, kept) %}
  {%- endif -%}
{% endmacro %}


{# Runs a statement that changes this table or view and no other: the embedded catalog writes down just that. #}
{% macro run_change(relation, sql) %}
  {% do tidemark.announce_change(relation) %}
  {{ return(run_query(sql)) }}
{% endmacro %}


{# The next statement changes this table or view and no other. #}
{% macro announce_change(relation) %}
  {%- if target.type == 'tidemark' -%}{% do adapter.announce_change(relation) %}{%- endif -%}
{% endmacro %}
