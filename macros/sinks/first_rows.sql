{#
  The first row of each table version in a range, in the order in which they come: [topic, upstream_id, dispatcher_id, epoch, seq].

  decided: row_dispatch, or a subquery with its columns.
#}
{% macro first_rows(decided, range) %}
  {%- set rows = [] -%}
  {%- for row in run_query(
    'with firsts as (select topic, upstream_id, min(struct(commit_ts, dispatcher_id, epoch, seq)) as first from ' ~ decided
    ~ ' where ' ~ range.condition ~ ' group by topic, upstream_id, schema_name, table_name, table_info_version)'
    ~ ' select topic, upstream_id, first.dispatcher_id, first.epoch, first.seq from firsts order by first.commit_ts, topic, upstream_id, first.dispatcher_id'
  ) -%}
    {% do rows.append([row[0], row[1], row[2], row[3] | int, row[4] | int]) %}
  {%- endfor -%}
  {{ return(rows) }}
{% endmacro %}
