{#
  Where the value of each of some columns stands in the rows of each version of a table.

  versions: as table_history gives them; columns: of the latest one.
  Returns the versions, each with sources: for each column {'column': the column of that version that became it} or, where there is none yet,
  {'default_of': the column that was added later}, whose original default is the value.

  From version to version a column keeps its id, whatever its name. A change of type that rewrites the rows gives it another id under the same name. Ids of
  clusters and of tables that were created again have nothing to do with each other: there, names decide.
#}
{% macro column_sources(versions, columns) %}
  {%- set written, later = [], {} -%}
  {%- for version in versions | reverse -%}
    {%- set table, sources = version.upstream_id ~ ' ' ~ version.table_id, [] -%}
    {%- set next = later.get(table) -%}
    {%- for column in columns -%}
      {%- if next is none -%}
        {%- set found = version.columns | selectattr('name', 'equalto', column.name) | list -%}
        {% do sources.append({'column': found[0]} if found else {'default_of': column}) %}
      {%- elif 'default_of' in next.sources[loop.index0] -%}
        {% do sources.append(next.sources[loop.index0]) %}
      {%- else -%}
        {%- set became = next.sources[loop.index0].column -%}
        {%- set found = tidemark.earlier_column(became, version.columns, next) -%}
        {% do sources.append({'default_of': became} if found is none else {'column': found}) %}
      {%- endif -%}
    {%- endfor -%}
    {% do version.update({'sources': sources}) %}
    {% do later.update({table: version}) %}
    {% do written.insert(0, version) %}
  {%- endfor -%}
  {{ return(written) }}
{% endmacro %}


{# The column of a version that became `column` of the next one; none if it was added. #}
{% macro earlier_column(column, columns, next) %}
  {%- set same = columns | selectattr('id', 'equalto', column.id) | list -%}
  {%- if same -%}
    {{ return(same[0]) }}
  {%- endif -%}
  {%- set gone = columns | rejectattr('id', 'in', next.columns | map(attribute='id') | list) | list -%}
  {%- set renamed = gone | selectattr('name', 'equalto', column.name) | list -%}
  {#- `modify column` is about one column -#}
  {%- if not renamed and next.ddl_type == 12 and gone | length == 1 -%}
    {{ return(gone[0]) }}
  {%- endif -%}
  {{ return(renamed[0] if renamed else none) }}
{% endmacro %}


{#
  How rows of each version are read into some columns: `latest`, an expression per column, and `others`, those of the earlier versions that have to be read in another way,
  each with `expressions` and `versions`, the conditions under which they hold. Nearly always there are none.

  written: as column_sources gives them. A row is a map.
#}
{% macro column_readings(written, columns) %}
  {%- set layouts, found = {}, {} -%}
  {%- for version in written -%}
    {%- set expressions = [] -%}
    {%- for column in columns -%}{% do expressions.append(tidemark.source_value(column, version.sources[loop.index0])) %}{%- endfor -%}
    {% do layouts.setdefault(expressions | join('\n'), {'expressions': expressions, 'versions': []})['versions'].append(
      'upstream_id = ' ~ tidemark.text_literal(version.upstream_id) ~ ' and table_id = ' ~ version.table_id ~ ' and table_version = ' ~ version.table_version
    ) %}
    {% do found.update({'latest': expressions}) %}
  {%- endfor -%}
  {% do layouts.pop(found.latest | join('\n')) %}
  {{ return({'latest': found.latest, 'others': layouts.values() | list}) }}
{% endmacro %}
