{#
  The versions of the tables that have a name, in any cluster, in the order in which they came: those that current rows under that name may have been written with.
  Each has upstream_id, table_id, table_version, ddl_type and columns.
#}
{% macro table_history(schema_name, table_name) %}
  {%- set versions, checkpoints, as_of_ts = ref('table_versions'), ref('int_checkpoints'), tidemark.as_of_ts() -%}
  {%- if not execute -%}
    {{ return([]) }}
  {%- endif -%}
  {%- set found = run_query(
    'with shown as (select upstream_id, ' ~ ('max(checkpoint_ts)' if as_of_ts is none else as_of_ts) ~ ' as shown_ts from ' ~ checkpoints ~ ' group by upstream_id),'
    ~ ' named as (select v.*, last_value(struct(schema_name, table_name)) over (partition by upstream_id, table_id order by valid_from_ts'
    ~ ' rows between unbounded preceding and unbounded following) as name'
    ~ ' from ' ~ versions ~ ' as v inner join shown using (upstream_id) where valid_from_ts <= shown_ts)'
    ~ ' select upstream_id, table_id, table_version, ddl_type, to_json(columns) from named'
    ~ ' where name.schema_name = ' ~ tidemark.text_literal(schema_name) ~ ' and name.table_name = ' ~ tidemark.text_literal(table_name)
    ~ ' order by valid_from_ts, table_version, upstream_id, table_id'
  ) -%}
  {%- if found | length == 0 -%}
    {% do exceptions.raise_compiler_error(
      'no table is called ' ~ schema_name ~ '.' ~ table_name ~ (' as of ' ~ as_of_ts if as_of_ts is not none else ' so far')
      ~ '; `select distinct schema_name, table_name from ' ~ versions ~ '` lists the names there have been'
    ) %}
  {%- endif -%}
  {%- set history = [] -%}
  {%- for row in found -%}
    {% do history.append({
      'upstream_id': row[0], 'table_id': row[1] | int, 'table_version': row[2] | int, 'ddl_type': row[3], 'columns': fromjson(row[4])
    }) %}
  {%- endfor -%}
  {{ return(history) }}
{% endmacro %}
