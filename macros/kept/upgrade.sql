{#
  Brings every table that is kept to the form that this version and the var `table_format` want, from its own rows: no log is read (`tidemark upgrade`).

    a warehouse of 0.1.0      a partition per batch, and no property `tidemark.kept`: the partitions say the last batch
    another table_format      parquet, delta and iceberg, in any direction

  A copy is made beside, and one statement shows it. Which batch is handled stays as it is, and so does the name of the log plan: sinks go on where they are. A crash leaves the old
  rows or the new ones; the same command does the rest.
#}
{% macro upgrade() %}
  {%- set copied, plan = [], tidemark.stored_plan() -%}
  {%- for node in tidemark.kept_models() -%}
    {%- set relation = api.Relation.create(schema=node.schema, identifier=node.alias) -%}
    {%- if tidemark.is_built([relation]) -%}
      {%- set form = tidemark.stored_form(relation, node) -%}
      {%- if not form.is_wanted -%}
        {% do copied.append(node.name) %}
        {% do tidemark.copy_kept(relation, node, form, plan) %}
        {% do print(node.name ~ ': copied from ' ~ form.name ~ ' to ' ~ var('table_format') ~ (', up to batch ' ~ form.kept.batch if form.kept.batch else '')) %}
      {%- endif -%}
      {% do tidemark.drop_copied(relation) %}
      {% do tidemark.drop_leftovers(relation) %}
    {%- endif -%}
  {%- endfor -%}
  {%- if target.type == 'tidemark' -%}
    {% do adapter.remove_unused_folders(target.schema ~ '_store') %}
  {%- endif -%}
  {% do print((copied | length) ~ ' tables copied' if copied else 'nothing to do: all tables are as this version and table_format want them') %}
{% endmacro %}


{# The build of the log plan, whose batches all models count. It stays as it is. #}
{% macro stored_plan() %}
  {%- for node in tidemark.kept_models() if node.name == 'log_segments' -%}
    {%- set relation = api.Relation.create(schema=node.schema, identifier=node.alias) -%}
    {{ return(tidemark.stored_form(relation, node).kept.built if tidemark.is_built([relation]) else '') }}
  {%- endfor -%}
  {{ return('') }}
{% endmacro %}


{# The models whose rows are kept from run to run, by name. #}
{% macro kept_models() %}
  {%- set found = [] -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized in ('batched', 'appended') -%}
    {% do found.append(node) %}
  {%- endfor -%}
  {{ return(found | sort(attribute='name')) }}
{% endmacro %}


{#
  How the rows of a model are kept that is built: name says it for a person, kept is what is known of them (kept.sql), is_wanted whether this version and the settings want just that.
#}
{% macro stored_form(relation, node) %}
  {%- set text, table_format = tidemark.relation_property(relation, 'tidemark.kept'), var('table_format') -%}
  {%- if text is none -%}
    {{ return({'name': 'a table of 0.1.0', 'kept': tidemark.kept_before(relation, node), 'is_wanted': false}) }}
  {%- endif -%}
  {%- set kept = tidemark.kept(relation) -%}
  {%- set is_there = table_format == 'parquet' or tidemark.stored_table(relation) | string == tidemark.format_table(relation, table_format) -%}
  {{ return({'name': kept.format, 'kept': kept, 'is_wanted': kept.format == table_format and is_there}) }}
{% endmacro %}


{# What is known of a table of 0.1.0: its partitions, or a property where MERGE kept it, say the last batch, and its name was that of the log plan. #}
{% macro kept_before(relation, node) %}
  {%- set table = tidemark.stored_table(relation) -%}
  {%- set kept = dict(tidemark.nothing_kept(), built=table.identifier) -%}
  {%- if node.config.materialized == 'appended' -%}
    {{ return(kept) }}
  {%- endif -%}
  {%- set rows_of = run_query('select max(batch_id) from ' ~ relation)[0][0] -%}
  {%- set batches = [] -%}
  {%- for row in run_query('show tblproperties ' ~ table) if row[0] == 'tidemark.last_batch' -%}{% do batches.append(row[1] | int) %}{%- endfor -%}
  {%- if not batches -%}
    {%- for row in run_query('show partitions ' ~ table) -%}{% do batches.append(row[0].split('=')[1] | int) %}{%- endfor -%}
  {%- endif -%}
  {{ return(dict(kept, batch=(batches + [0]) | max, rows_of=(rows_of or 0) | int)) }}
{% endmacro %}


{# Copies the rows of a model into a table of the format that is wanted, and shows that one. #}
{% macro copy_kept(relation, node, form, plan) %}
  {%- set table_format, select = var('table_format'), tidemark.rows_to_copy(relation, node, form.kept) -%}
  {%- set known = dict(form.kept, drops=tidemark.stored_table(relation) | string if form.kept.format == 'iceberg' else none) -%}
  {%- if node.name != 'log_segments' and node.config.materialized == 'batched' -%}
    {%- set known = dict(known, plan=form.kept.get('plan', plan)) -%}
  {%- endif -%}
  {%- if table_format == 'parquet' -%}
    {%- set table = tidemark.new_store_table(relation) -%}
    {% do tidemark.run_change(
      table, 'create table ' ~ table ~ ' using parquet partitioned by (part) as select ' ~ tidemark.few_files(relation) ~ '*, cast(1 as bigint) as part from (' ~ select ~ ')'
    ) %}
    {%- set kept = tidemark.with_part(dict(known, parts=[], left=[]), table, 1) -%}
    {% do tidemark.show_parts(relation, table, dict(kept, format='parquet', written=form.kept.written, in_table=false)) %}
  {%- else -%}
    {%- set table = tidemark.format_table(relation, table_format) -%}
    {%- set is_replaced = node.config.get('keeps') == 'last_batch' -%}
    {%- set kept = dict(known, format=table_format, parts=[], left=[], changes=form.kept.changes + 1, in_table=is_replaced) -%}
    {% do tidemark.create_format_table(relation, table, table_format, select, kept if is_replaced else none, 'copied') %}
    {% do tidemark.show_format_table(relation, table, kept) %}
  {%- endif -%}
{% endmacro %}


{# Drops the table of another catalog that a model was copied from, also for a process that died before it could. Two names of a catalog may mean the same table. #}
{% macro drop_copied(relation) %}
  {%- set kept = tidemark.kept(relation) -%}
  {%- if kept.get('drops') -%}
    {%- set is_same = tidemark.table_location(kept.drops) == tidemark.table_location(tidemark.stored_table(relation)) if tidemark.is_there(kept.drops) else true -%}
    {%- if not is_same -%}
      {% do tidemark.announce_change(none) %}
      {% do run_query('drop table if exists ' ~ kept.drops ~ ' purge') %}
    {%- endif -%}
    {% do tidemark.note_kept(relation, dict(kept, drops=none)) %}
  {%- endif -%}
{% endmacro %}


{# Whether a catalog has this table, which is given with the catalog's name. #}
{% macro is_there(table) %}
  {%- set names = (table | string).rpartition('.') -%}
  {{ return(run_query('show tables in ' ~ names[0] ~ " like '" ~ names[2] ~ "'") | length > 0) }}
{% endmacro %}


{#
  A query of the rows of a model as this version keeps them: 0.1.0 kept the epochs of every batch, and a column of int_winners that nothing needs. Of a key that is merged, the
  newest write is enough. Rows that a run which died has left in a table format, and that are not noted, are not taken along.
#}
{% macro rows_to_copy(relation, node, kept) %}
  {%- set columns = [] -%}
  {%- for column in adapter.get_columns_in_relation(relation) if node.name != 'int_winners' or column.name != 'from_batch' -%}
    {%- if adapter.quote(column.name) not in columns -%}{% do columns.append(adapter.quote(column.name)) %}{%- endif -%}
  {%- endfor -%}
  {%- set names, key_columns = columns | join(', '), [] -%}
  {%- for name in node.config.get('merged_by') or [] -%}{% do key_columns.append(adapter.quote(name)) %}{%- endfor -%}
  {%- if key_columns -%}
    {{ return(
      'select ' ~ names ~ ' from (select ' ~ names ~ ', row_number() over (partition by ' ~ key_columns | join(', ') ~ ' order by write_order desc) as place_by_age from ' ~ relation
      ~ ') where place_by_age = 1'
    ) }}
  {%- elif node.config.get('keeps') == 'last_batch' -%}
    {{ return('select ' ~ names ~ ' from ' ~ relation ~ ' where batch_id = ' ~ kept.batch) }}
  {%- endif -%}
  {#- a run that died may have left rows of a later batch, which the next run writes again -#}
  {{ return('select ' ~ names ~ ' from ' ~ relation ~ (' where batch_id <= ' ~ kept.batch if node.config.materialized == 'batched' else '')) }}
{% endmacro %}


{# A hint that makes files of a good size, where it is known how much there is: a table of 0.1.0 may have a file for every batch. #}
{% macro few_files(relation) %}
  {%- if target.type != 'tidemark' or tidemark.relation_property(relation, 'tidemark.table') -%}
    {{ return('') }}
  {%- endif -%}
  {{ return('/*+ coalesce(' ~ (adapter.table_bytes(tidemark.stored_table(relation)) // (128 * 1024 * 1024) + 1) ~ ') */ ') }}
{% endmacro %}


{#
  Drops the tables of a model in the store that are not the one that its name shows: those of earlier builds and forms, and what a process that died has left.

  shown: that table, where dbt does not know the relation yet.
#}
{% macro drop_leftovers(relation, shown=none) %}
  {%- set shown, dropped = (shown or tidemark.stored_table(relation)) | string, [] -%}
  {%- set schema = relation.schema ~ '_store' -%}
  {%- if not run_query("show schemas like '" ~ schema ~ "'") | length -%}
    {#- Iceberg's tables are in a catalog of their own -#}
    {{ return([]) }}
  {%- endif -%}
  {%- for row in run_query('show tables in ' ~ schema ~ " like '" ~ relation.identifier ~ "*'") -%}
    {%- set other = api.Relation.create(schema=schema, identifier=row[1], type='table') -%}
    {%- if other | string != shown and modules.re.match('^' ~ relation.identifier ~ '(__[0-9]{20})?$', row[1]) -%}
      {% do tidemark.run_change(other, 'drop table if exists ' ~ other) %}
      {% do dropped.append(row[1]) %}
    {%- endif -%}
  {%- endfor -%}
  {{ return(dropped) }}
{% endmacro %}
