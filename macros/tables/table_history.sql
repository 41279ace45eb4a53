{#
  The versions of the tables that have a name, in any cluster, in the order in which they came: those that current rows under that name may have been written with.
  Each has upstream_id, table_id, table_version, ddl_type and columns.
#}
{% macro table_history(schema_name, table_name) %}
  {%- set versions, as_of_ts = ref('table_versions'), tidemark.as_of_ts() -%}
  {%- set identities, shown = tidemark.shown_tables(as_of_ts), tidemark.shown_checkpoints(as_of_ts) -%}
  {%- if not execute -%}
    {{ return([]) }}
  {%- endif -%}
  {%- set found = run_query(
    'with identities as (' ~ identities ~ '), shown_until as (' ~ shown ~ ')'
    ~ ' select v.upstream_id, v.table_id, v.table_version, v.ddl_type, to_json(v.columns) from ' ~ versions ~ ' as v'
    ~ ' inner join identities as i on v.upstream_id = i.upstream_id and v.table_id = i.table_id'
    ~ ' inner join shown_until as s on v.upstream_id = s.upstream_id and v.valid_from_ts <= s.shown_ts'
    ~ ' where i.schema_name = ' ~ tidemark.text_literal(schema_name) ~ ' and i.table_name = ' ~ tidemark.text_literal(table_name)
    ~ ' order by v.valid_from_ts, v.table_version, v.upstream_id, v.table_id'
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
