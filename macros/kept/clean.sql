{#
  Removes what nobody needs any more, and says what it removed (`tidemark clean`):

    row changes    of batches older than the var `keep_row_changes`. The newest write of every key stays, with batch_id 0: a snapshot of any later ts, the reconciliation and late rows
                   need no other of that time
    events         of batches older than the var `keep_events`: frames, transactions as they were sent, resolved events, sync points, control events
    leftovers      parts and tables that nothing shows, and folders that no table refers to: what a process that died has left

  What stays for ever: the plan of the logs, handshakes and statements (they are the schema history), checkpoints, int_transactions (by which a transaction that is delivered again is
  known), and every row that `quarantine` shows. Only whole batches go that retention.sql says nobody needs.

  On parquet each table changes by one statement that a reader notices: a crash leaves it as it was or as it is to be. In every format the same command does the rest.
#}
{% macro clean(dry_run=false) %}
  {%- if not tidemark.is_built([ref('log_segments'), ref('int_row_changes'), ref('int_winners'), ref('row_policy'), ref('sync_points'), ref('sink_checkpoints')]) -%}
    {% do exceptions.raise_compiler_error('there is nothing to clean before all models were built by this version: run `dbt run` once') %}
  {%- endif -%}
  {% do tidemark.check_retired_sinks() %}
  {%- for name, models in {
    'keep_row_changes': ['int_row_changes'],
    'keep_events': ['stg_frames', 'stg_transactions', 'stg_resolved_events', 'stg_sync_points', 'stg_control_events']
  }.items() -%}
    {%- set unneeded = tidemark.unneeded_batches(var(name)) -%}
    {%- if var(name) == 'all' -%}
      {% do print(name ~ ': all, nothing is removed') %}
    {%- else -%}
      {% do print(
        name ~ ': ' ~ var(name) ~ (', batches up to ' ~ unneeded.batch ~ ' are older and not needed' if unneeded.batch else ', no batch is older and not needed')
        ~ ('; more are kept for ' ~ unneeded.holders | join(', ') if unneeded.holders else '')
      ) %}
    {%- endif -%}
    {%- for model_name in models if unneeded.batch -%}
      {% do tidemark.clean_model(ref(model_name), model_name, unneeded, dry_run) %}
    {%- endfor -%}
  {%- endfor -%}
  {% do tidemark.clean_leftovers(dry_run) %}
{% endmacro %}


{# Removes the old rows of a model. #}
{% macro clean_model(relation, model_name, unneeded, dry_run) %}
  {%- set kept, batch = tidemark.kept(relation), unneeded.batch -%}
  {%- if kept.get('cleaned', [0, 0])[0] >= batch -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set needed = tidemark.needed_places(relation, model_name, batch) -%}
  {%- if dry_run -%}
    {%- set counted = run_query('select count(*), count_if(' ~ tidemark.is_kept_row(model_name, batch, needed) ~ ') from ' ~ relation)[0] -%}
    {% do print('  ' ~ model_name ~ ': would remove ' ~ (counted[0] - counted[1]) ~ ' of ' ~ counted[0] ~ ' rows') %}
    {{ return(none) }}
  {%- endif -%}
  {%- set rows_before = run_query('select count(*) from ' ~ relation)[0][0] | int -%}
  {%- if kept.format == 'parquet' -%}
    {%- set after = tidemark.clean_parts(relation, model_name, kept, unneeded, needed) -%}
  {%- else -%}
    {%- set after = tidemark.clean_format_table(relation, model_name, kept, unneeded, needed) -%}
  {%- endif -%}
  {%- set rows_after = run_query('select count(*) from ' ~ relation)[0][0] | int -%}
  {% do print('  ' ~ model_name ~ ': removed ' ~ (rows_before - rows_after) ~ ' of ' ~ rows_before ~ ' rows' ~ after) %}
{% endmacro %}


{# Which rows of a model stay, as a condition. #}
{% macro is_kept_row(model_name, batch, needed) %}
  {%- set columns = {'int_row_changes': '(file, `offset`, row_number)', 'stg_frames': '(file, `offset`)', 'stg_sync_points': '(file, `offset`)'} -%}
  {{ return(
    '(batch_id > ' ~ batch ~ ' or error_reason is not null' ~ (' or ' ~ columns[model_name] ~ ' in (' ~ needed ~ ')' if needed else '') ~ ')'
  ) }}
{% endmacro %}


{#
  A query of the places of old rows that are needed all the same; none where there are no such.

  int_row_changes    the newest write of every key, by the row policy and by the order of commits: that of deletes, which a policy may not send, and that of other changes
  stg_frames         frames that could not be decoded, which `quarantine` shows
  stg_sync_points    those of the newest sync point that is complete, of which a snapshot may be asked
#}
{% macro needed_places(relation, model_name, batch) %}
  {%- if model_name == 'stg_frames' -%}
    {%- set places = [] -%}
    {%- for name in ['stg_transactions', 'stg_ddl_events', 'stg_resolved_events', 'stg_handshakes', 'stg_sync_points', 'stg_control_events', 'int_row_changes'] -%}
      {% do places.append('select file, `offset` from ' ~ ref(name) ~ ' where error_reason is not null') %}
    {%- endfor -%}
    {{ return(places | join(' union ')) }}
  {%- elif model_name == 'stg_sync_points' -%}
    {{ return(
      'select file, `offset` from ' ~ relation ~ ' where commit_ts = (select max(sync_point_ts) from ' ~ ref('sync_points')
      ~ ' where is_complete and sync_point_ts <= (select min(last_ts) from (select max(checkpoint_ts) as last_ts from ' ~ ref('int_checkpoints') ~ ' group by upstream_id)))'
    ) }}
  {%- elif model_name != 'int_row_changes' -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set key_columns = ['key', 'table_name', 'schema_name', 'upstream_id', 'physical_table_id'] -%}
  {%- set sent = '(select * from ' ~ ref('row_policy') ~ ' where policy_op is not null and batch_id <= ' ~ batch ~ ')' -%}
  {{ return(
    'select inline(array(max_by(struct(file, `offset`, row_number), write_order))) from (' ~ tidemark.applied_writes(sent, key_columns + ['file', '`offset`', 'row_number'])
    ~ ') group by ' ~ key_columns | join(', ')
    ~ ' union select inline(array(max_by(struct(file, `offset`, row_number), struct(commit_ts, start_ts, seq, row_number)))) from ' ~ relation
    ~ ' where error_reason is null and batch_id <= ' ~ batch
    ~ " group by upstream_id, schema_name, table_name, physical_table_id, coalesce(key, hex(row_key)), op = 'delete'"
  ) }}
{% endmacro %}


{# The columns of a model for a rewrite of its rows: a row change that stays only as the newest of its key has batch_id 0. #}
{% macro cleaned_columns(relation, model_name, batch) %}
  {%- set columns = tidemark.columns_of_parts(relation) -%}
  {%- if model_name != 'int_row_changes' -%}
    {{ return(columns) }}
  {%- endif -%}
  {{ return(
    columns.replace('`batch_id`', 'case when batch_id <= ' ~ batch ~ ' and error_reason is null then cast(0 as bigint) else batch_id end as batch_id')
  ) }}
{% endmacro %}


{# On parquet: the parts with old rows become one, which stands where the first of them stood. #}
{% macro clean_parts(relation, model_name, kept, unneeded, needed) %}
  {%- set table, old_parts = tidemark.stored_table(relation), [] -%}
  {%- set shown = kept.parts | map(attribute=0) | list -%}
  {%- if shown -%}
    {%- for row in run_query('select distinct part from ' ~ table ~ ' where part in (' ~ shown | join(', ') ~ ') and batch_id <= ' ~ unneeded.batch) -%}
      {% do old_parts.append(row[0] | int) %}
    {%- endfor -%}
  {%- endif -%}
  {%- set cleaned = dict(kept, cleaned=[unneeded.batch, unneeded.ts]) -%}
  {%- if not old_parts -%}
    {% do tidemark.note_kept(relation, cleaned) %}
    {{ return('') }}
  {%- endif -%}
  {%- set bytes = kept.parts | selectattr(0, 'in', old_parts) | map(attribute=1) | sum -%}
  {%- set part = tidemark.begin_part(table, kept) -%}
  {% do tidemark.run_change(table, tidemark.insert_part_sql(
    table,
    part,
    '/*+ coalesce(' ~ (bytes // (128 * 1024 * 1024) + 1) ~ ') */ ' ~ tidemark.cleaned_columns(relation, model_name, unneeded.batch),
    'from ' ~ table ~ ' where part in (' ~ old_parts | join(', ') ~ ') and ' ~ tidemark.is_kept_row(model_name, unneeded.batch, needed)
  )) %}
  {%- set written = tidemark.with_part(cleaned, table, part, old_parts) -%}
  {%- set parts, others = [], [] -%}
  {%- for known in written.parts -%}{% do (parts if known[0] == part else others).append(known) %}{%- endfor -%}
  {% do tidemark.show_parts(relation, table, dict(written, parts=parts + others, written=kept.written)) %}
  {{ return('; ' ~ old_parts | length ~ ' of ' ~ shown | length ~ ' parts became one, ' ~ written.written ~ ' bytes in place of ' ~ bytes) }}
{% endmacro %}


{#
  In a table format: rows go by one statement, row changes that stay are marked by another. That it has begun is noted before: if it dies, nobody takes what is left for the whole, and
  the same command does the rest.
#}
{% macro clean_format_table(relation, model_name, kept, unneeded, needed) %}
  {%- set table = tidemark.stored_table(relation) -%}
  {% do tidemark.note_kept(relation, dict(kept, cleaning=[unneeded.batch, unneeded.ts], changes=kept.changes + 1)) %}
  {% do tidemark.announce_change(none) %}
  {%- if needed -%}
    {%- set columns = {'int_row_changes': ['file', '`offset`', 'row_number']}.get(model_name, ['file', '`offset`']) -%}
    {%- set same = [] -%}
    {%- for name in columns -%}{% do same.append('kept.' ~ name ~ ' = gone.' ~ name) %}{%- endfor -%}
    {% do run_query(
      'merge into ' ~ table ~ ' as kept using (select ' ~ columns | join(', ') ~ ' from ' ~ table ~ ' where not ' ~ tidemark.is_kept_row(model_name, unneeded.batch, needed) ~ ') as gone on '
      ~ same | join(' and ') ~ ' when matched then delete'
    ) %}
  {%- else -%}
    {% do run_query('delete from ' ~ table ~ ' where not ' ~ tidemark.is_kept_row(model_name, unneeded.batch, none)) %}
  {%- endif -%}
  {%- if model_name == 'int_row_changes' -%}
    {% do tidemark.announce_change(none) %}
    {% do run_query('update ' ~ table ~ ' set batch_id = 0 where batch_id > 0 and batch_id <= ' ~ unneeded.batch ~ ' and error_reason is null') %}
  {%- endif -%}
  {% do tidemark.note_kept(relation, dict(kept, cleaned=[unneeded.batch, unneeded.ts], cleaning=none, changes=kept.changes + 2)) %}
  {{ return('') }}
{% endmacro %}


{# Drops what nothing shows: parts, tables and folders. Formats merge their small files, and forget versions as old as they say themselves. #}
{% macro clean_leftovers(dry_run) %}
  {%- set done = 'would be ' if dry_run else '' -%}
  {%- for node in tidemark.kept_models() -%}
    {%- set relation = api.Relation.create(schema=node.schema, identifier=node.alias) -%}
    {%- set kept = tidemark.kept(relation) -%}
    {%- if kept is not none and kept.format != 'parquet' -%}
      {%- if not dry_run -%}{% do tidemark.compact_format_table(tidemark.stored_table(relation), kept) %}{%- endif -%}
      {% do print('  ' ~ node.name ~ ': small files ' ~ done ~ 'merged, files of versions older than the format keeps ' ~ done ~ 'removed') %}
    {%- elif kept is not none and target.type == 'tidemark' -%}
      {#- other processes are kept out by the lock of the state folder: nobody reads these parts any more -#}
      {%- set table = tidemark.stored_table(relation) -%}
      {%- set hidden = adapter.part_numbers(table) | reject('in', kept.parts | map(attribute=0) | list) | list -%}
      {%- if not dry_run -%}{% do tidemark.drop_parts(table, hidden) %}{%- endif -%}
      {%- if hidden -%}{% do print('  ' ~ node.name ~ ': ' ~ hidden | length ~ ' parts that are not shown ' ~ done ~ 'dropped') %}{%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- for schema in tidemark.store_schemas() -%}
    {%- for table in tidemark.unshown_tables(schema) -%}
      {%- if not dry_run -%}{% do tidemark.run_change(table, 'drop table if exists ' ~ table) %}{%- endif -%}
      {% do print('  the table ' ~ table ~ ', which nothing shows, ' ~ done ~ 'dropped') %}
    {%- endfor -%}
    {%- if target.type == 'tidemark' -%}
      {%- for name, bytes in adapter.unused_folders(schema) -%}
        {% do print('  the folder ' ~ name ~ ', to which no table refers, ' ~ done ~ 'removed: ' ~ bytes ~ ' bytes') %}
      {%- endfor -%}
      {%- if not dry_run -%}{% do adapter.remove_unused_folders(schema) %}{%- endif -%}
    {%- endif -%}
  {%- endfor -%}
{% endmacro %}


{# The schemas in which tables of this project are stored, as far as they are there. #}
{% macro store_schemas() %}
  {%- set names, found = [], [] -%}
  {%- for node in graph.nodes.values() if node.resource_type in ('model', 'seed') and node.schema ~ '_store' not in names -%}
    {% do names.append(node.schema ~ '_store') %}
  {%- endfor -%}
  {%- for row in run_query('show schemas') if row[0] in names -%}{% do found.append(row[0]) %}{%- endfor -%}
  {{ return(found) }}
{% endmacro %}


{# The tables of a store that a model has made and no view shows. Whose view is there stays, also if the model has left the project. #}
{% macro unshown_tables(schema) %}
  {%- set shown_schema, shown, found = schema[:-6], [], [] -%}
  {%- for row in run_query('show views in ' ~ shown_schema) -%}
    {% do shown.append(tidemark.stored_table(api.Relation.create(schema=shown_schema, identifier=row[1], type='view')) | string) %}
  {%- endfor -%}
  {%- for row in run_query('show tables in ' ~ schema) -%}
    {%- set table = api.Relation.create(schema=schema, identifier=row[1], type='table') -%}
    {%- if table | string not in shown and modules.re.match('^.+__[0-9]{20}$', row[1]) -%}{% do found.append(table) %}{%- endif -%}
  {%- endfor -%}
  {{ return(found) }}
{% endmacro %}


{# Merges the small files of a table, and forgets old versions of it. #}
{% macro compact_format_table(table, kept) %}
  {% do tidemark.merge_small_files(table, kept) %}
  {% do tidemark.announce_change(none) %}
  {%- if kept.format == 'delta' -%}
    {#- VACUUM lists files in as many tasks as this says, 10,000 by default: on one machine that takes minutes for each table -#}
    {%- if target.type == 'tidemark' -%}{% do run_query('set spark.sql.sources.parallelPartitionDiscovery.parallelism = 2') %}{%- endif -%}
    {% do tidemark.announce_change(none) %}
    {% do run_query('vacuum ' ~ table) %}
  {%- else -%}
    {%- set names = (table | string).split('.', 1) -%}
    {% do run_query('call ' ~ names[0] ~ ".system.expire_snapshots(table => '" ~ names[1] ~ "')") %}
  {%- endif -%}
{% endmacro %}
