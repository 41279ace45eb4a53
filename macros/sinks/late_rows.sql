{#
  The rows and statements of a range that come too late for it, and what becomes of them. The var `late_rows` says it, but for upserts by which the last writer wins: these are
  right in any order, and always sent.

  decision    fail, send, skip; left_out: the changefeed sends none of them anyway
  rows, statements    how many would be sent
  tables      [upstream_id, table, transactions, rows, first commit ts, last commit ts] of each table
#}
{% macro late_rows(sink, range) %}
  {%- set late = {'decision': var('late_rows'), 'rows': 0, 'statements': 0, 'tables': []} -%}
  {%- for row in run_query(
    "select upstream_id, concat(schema_name, '.', table_name), count(distinct physical_table_id, start_ts, commit_ts), count(*), min(commit_ts), max(commit_ts)"
    ~ ' from ' ~ ref('row_policy') ~ ' where policy_op is not null and ' ~ range.late_condition ~ ' group by upstream_id, schema_name, table_name order by 4 desc, 1, 2'
  ) -%}
    {% do late.tables.append([row[0], row[1], row[2] | int, row[3] | int, row[4] | int, row[5] | int]) %}
    {% do late.update({'rows': late.rows + row[3] | int}) %}
  {%- endfor -%}
  {%- if sink != 'tidb' -%}
    {% do late.update({'statements': run_query(
      'select count(*) from (' ~ tidemark.ddl_statements(range, true) ~ ') as statements left join ' ~ ref('table_filter')
      ~ ' as filter using (schema_name, table_name) where finished_ts <= ' ~ range.after_ts ~ ' and coalesce(filter.is_replicated, true)'
    )[0][0] | int}) %}
  {%- endif -%}
  {%- if not late.rows and not late.statements -%}
    {% do late.update({'decision': 'left_out'}) %}
  {%- elif sink == 'tidb' and tidemark.is_active_active_mode() -%}
    {% do late.update({'decision': 'send'}) %}
  {%- elif range.is_unknown and sink != 'tidb' and late.decision == 'send' -%}
    {% do late.update({'decision': 'fail'}) %}
  {%- endif -%}
  {{ return(late) }}
{% endmacro %}


{# Ends the run where late rows are to do so, and warns of those that are left out. #}
{% macro judge_late_rows(sink, range) %}
  {%- if range.late.decision not in ('fail', 'skip') -%}
    {{ return('') }}
  {%- endif -%}
  {%- set tables = [] -%}
  {%- for upstream_id, table, transactions, rows, first_ts, last_ts in range.late.tables[:10] -%}
    {% do tables.append(
      "upstream '" ~ upstream_id ~ "' " ~ table ~ ': ' ~ tidemark.counted(rows, 'row change') ~ ' in ' ~ tidemark.counted(transactions, 'transaction')
      ~ ', commit ts ' ~ first_ts ~ ' to ' ~ last_ts
    ) %}
  {%- endfor -%}
  {%- if range.late.tables | length > 10 -%}
    {% do tables.append('and ' ~ tidemark.counted(range.late.tables | length - 10, 'more table')) %}
  {%- endif -%}
  {%- if range.late.statements -%}
    {% do tables.append(tidemark.counted(range.late.statements, 'DDL statement')) %}
  {%- endif -%}
  {%- set what = model.name ~ ' is past commit ts ' ~ range.after_ts ~ ', and since then the logs brought ' ~ tidemark.counted(range.late.rows, 'row change')
    ~ ' from before that (' ~ tables | join('; ') ~ ').' -%}
  {%- set elsewhere = 'another prefix' if sink == 'storage' else 'another changefeed_id' -%}
  {%- if range.late.decision == 'skip' -%}
    {% do exceptions.warn(
      what ~ ' They are not sent (late_rows: skip); late_transactions lists them. To send everything once more, use ' ~ elsewhere
    ) %}
  {%- elif range.is_unknown and sink != 'tidb' -%}
    {% do exceptions.raise_compiler_error(
      what ~ ' The tables were rebuilt, and the logs now hold another number of row changes than were sent: which of them the sink has cannot be told. Nothing was sent.'
      ~ ' The tables are built. Send everything to a new place with ' ~ elsewhere ~ ", or go on without them: --vars 'late_rows: skip'"
    ) %}
  {%- else -%}
    {%- set ways = {
      'storage': 'as further files of their folders',
      'kafka': 'as they are, after the others',
      'tidb': 'where they are still the newest write of their key'
    } -%}
    {% do exceptions.raise_compiler_error(
      what ~ ' Nothing was sent; the tables are built, and late_transactions lists them. Choose: --vars ' ~ "'late_rows: send' sends them, " ~ ways[sink]
      ~ "; 'late_rows: skip' goes on without them; 'late_rows: fail', the default, stops here as long as they are there. To send everything once more, use " ~ elsewhere
    ) %}
  {%- endif -%}
{% endmacro %}
