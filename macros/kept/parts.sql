{#
  How rows are kept on parquet, which has no transactions.

  The table is in the schema `<schema>_store`, partitioned by `part`. A write goes into a part of its own; then one statement replaces the view that has the model's name: it lists
  the parts to show, and says with them which batch they go up to. A crash before that statement leaves the old rows; what it left behind has the number of the next part, and is overwritten.
  Parts that are no longer shown are dropped by the next write, so that a query that has begun can end.
#}

{# Writes some columns into a new part, and merges parts where there are many. What is to be shown. #}
{% macro write_part(table, kept, columns, source) %}
  {%- set part = tidemark.begin_part(table, kept) -%}
  {% do tidemark.run_change(table, tidemark.insert_part_sql(table, part, columns, source)) %}
  {{ return(tidemark.merged_parts(table, tidemark.with_part(kept, table, part))) }}
{% endmacro %}


{# Overwrites a part, which is a partition: Spark lets a statement do so that also reads other parts of the table. #}
{% macro insert_part_sql(table, part, columns, source) %}
  {{ return('insert overwrite table ' ~ table ~ ' partition (part) by name select ' ~ columns ~ ', cast(' ~ part ~ ' as bigint) as part ' ~ source) }}
{% endmacro %}


{# The number of a new part, which holds nothing; drops the parts that are no longer shown. #}
{% macro begin_part(table, kept) %}
  {%- set part = tidemark.next_part(kept) -%}
  {% do tidemark.drop_parts(table, kept.left + [part]) %}
  {{ return(part) }}
{% endmacro %}


{# Larger than the number of any part that is shown, or that a query may still read. A run that died may have left a part with it. #}
{% macro next_part(kept) %}
  {{ return((kept.parts | map(attribute=0) | list + kept.left + [0]) | max + 1) }}
{% endmacro %}


{# What is kept after a part was written; one without rows is not shown. `replaced`: parts whose rows it has taken over. #}
{% macro with_part(kept, table, part, replaced=[]) %}
  {%- set bytes, parts = tidemark.part_bytes(table, part), [] -%}
  {%- for known in kept.parts if known[0] not in replaced -%}{% do parts.append(known) %}{%- endfor -%}
  {%- if bytes -%}{% do parts.append([part, bytes]) %}{%- endif -%}
  {{ return(dict(
    kept,
    parts=parts,
    left=replaced + ([] if bytes else [part]),
    written=bytes,
    changes=kept.changes + (1 if bytes or replaced else 0)
  )) }}
{% endmacro %}


{# Many small parts become one: parts and files grow with the logarithm of the number of writes, and a row is rewritten a few times only. #}
{% macro merged_parts(table, kept) %}
  {%- set merged = tidemark.parts_to_merge(kept.parts) -%}
  {%- if not merged -%}
    {{ return(kept) }}
  {%- endif -%}
  {%- set bytes = kept.parts | selectattr(0, 'in', merged) | map(attribute=1) | sum -%}
  {%- set part, columns = tidemark.next_part(kept), tidemark.columns_of_parts(table) -%}
  {% do tidemark.run_change(table, tidemark.insert_part_sql(
    table,
    part,
    '/*+ coalesce(' ~ (bytes // (128 * 1024 * 1024) + 1) ~ ') */ ' ~ columns,
    'from ' ~ table ~ ' where part in (' ~ merged | join(', ') ~ ')'
  )) %}
  {%- set with_merged = tidemark.with_part(kept, table, part, merged) -%}
  {{ return(dict(with_merged, left=with_merged.left + kept.left, written=kept.written, changes=kept.changes)) }}
{% endmacro %}


{#
  Of the parts, oldest first, the newest that are to become one; none while there is no need. They are as many as possible, eight or more, of which none has more than a quarter of the
  bytes: so what is rewritten grows fourfold each time. Parts of a gigabyte stay as they are.
#}
{% macro parts_to_merge(parts) %}
  {%- set newest, found = namespace(parts=[], bytes=0, largest=0), namespace(merged=[]) -%}
  {%- for part, bytes in parts | reverse -%}
    {%- set newest.parts, newest.bytes, newest.largest = newest.parts + [part], newest.bytes + bytes, [newest.largest, bytes] | max -%}
    {%- if newest.parts | length >= 8 and 4 * newest.largest <= newest.bytes and newest.largest < 1024 ** 3 -%}
      {%- set found.merged = newest.parts -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(found.merged) }}
{% endmacro %}


{# How large a part is: in bytes, or in rows where only a query says it. #}
{% macro part_bytes(table, part) %}
  {%- if target.type == 'tidemark' -%}
    {{ return(adapter.partition_bytes(table, 'part=' ~ part)) }}
  {%- endif -%}
  {{ return(run_query('select count(*) from ' ~ table ~ ' where part = ' ~ part)[0][0] | int) }}
{% endmacro %}


{% macro drop_parts(table, parts) %}
  {%- if target.type == 'tidemark' -%}
    {%- set parts = parts | select('in', adapter.part_numbers(table)) | list -%}
  {%- endif -%}
  {%- if parts -%}
    {% do tidemark.run_change(table, 'alter table ' ~ table ~ ' drop if exists partition (part = ' ~ parts | join('), partition (part = ') ~ ')') %}
  {%- endif -%}
{% endmacro %}


{# The columns of a table of parts, as a list for a query. #}
{% macro columns_of_parts(table) %}
  {%- set names = [] -%}
  {%- for column in adapter.get_columns_in_relation(table) if column.name != 'part' and adapter.quote(column.name) not in names -%}
    {% do names.append(adapter.quote(column.name)) %}
  {%- endfor -%}
  {{ return(names | join(', ')) }}
{% endmacro %}


{# Shows these parts under the model's name: the one statement that a reader notices. #}
{% macro show_parts(relation, table, kept) %}
  {%- set existing = load_relation(relation) -%}
  {%- if existing is not none and not existing.is_view -%}
    {% do adapter.drop_relation(existing) %}
  {%- endif -%}
  {%- set parts = kept.parts | map(attribute=0) | list -%}
  {% do tidemark.run_change(
    relation,
    'create or replace view ' ~ relation ~ " tblproperties ('tidemark.version' = '" ~ table.identifier ~ "', 'tidemark.kept' = " ~ tidemark.text_literal(tojson(kept))
    ~ ') as select ' ~ tidemark.columns_of_parts(table) ~ ' from ' ~ table ~ ' where ' ~ ('part in (' ~ parts | join(', ') ~ ')' if parts else 'false')
  ) %}
{% endmacro %}


{# Notes what is kept where the rows stay as they are. #}
{% macro note_kept(relation, kept) %}
  {% do tidemark.run_change(relation, 'alter view ' ~ relation ~ " set tblproperties ('tidemark.kept' = " ~ tidemark.text_literal(tojson(kept)) ~ ')') %}
{% endmacro %}


{# A table for a build of a model from the beginning, which is not there yet. #}
{% macro new_store_table(relation) %}
  {% do tidemark.provide_store(relation) %}
  {{ return(api.Relation.create(schema=relation.schema ~ '_store', identifier=relation.identifier ~ '__' ~ run_started_at.strftime('%Y%m%d%H%M%S%f'), type='table')) }}
{% endmacro %}


{# Makes the schema for the tables of a model where it is not there yet. #}
{% macro provide_store(relation) %}
  {%- if target.type == 'tidemark' -%}
    {% do adapter.provide_schema(relation.schema ~ '_store') %}
  {%- else -%}
    {% do run_query('create schema if not exists ' ~ relation.schema ~ '_store') %}
  {%- endif -%}
{% endmacro %}
