{#
  The versions of tables that an event filter has an expression for, those with the same condition together: {'versions': as value_version writes them, 'conditions': op -> SQL}.
  An expression that cannot be written for a table ends the run, if there are rows that it is to judge; the message names rule, table and column.
#}
{% macro value_layouts() %}
  {%- set table_versions, table_filter, row_changes = ref('table_versions'), ref('table_filter'), ref('int_row_changes') -%}
  {%- if not tidemark.is_built([table_versions, table_filter, row_changes]) -%}
    {{ return([]) }}
  {%- endif -%}
  {%- set found = run_query(
    'select distinct versions.upstream_id, versions.schema_name, versions.table_name, to_json(versions.columns), to_json(filters.value_filters), '
    ~ tidemark.value_version('versions') ~ ' from ' ~ table_versions ~ ' as versions inner join ' ~ table_filter
    ~ ' as filters using (schema_name, table_name) where is_replicated and not is_view and size(value_filters) > 0'
  ) -%}
  {%- set layouts, problems = {}, {} -%}
  {%- for row in found -%}
    {%- set zone = tidemark.time_zones().get(row[0]) -%}
    {%- set layout = [row[1], row[2], row[3], row[4], zone] | join('\n') -%}
    {%- if layout not in layouts -%}
      {% do layouts.update({layout: tidemark.value_conditions(row[1] ~ '.' ~ row[2], fromjson(row[3]), fromjson(row[4]), zone)}) %}
      {% do layouts[layout].update({'versions': []}) %}
    {%- endif -%}
    {% do layouts[layout].versions.append(row[5]) %}
    {%- for op, problem in layouts[layout].problems.items() -%}
      {% do problems.update({(row[5], op): problem}) %}
    {%- endfor -%}
  {%- endfor -%}
  {% do tidemark.check_value_problems(problems, row_changes) %}
  {{ return(layouts.values() | list) }}
{% endmacro %}


{# The condition of each kind of row change of a table, and the problem of each for which there can be none. #}
{% macro value_conditions(table, columns, filters, zone) %}
  {%- set values, conditions, problems = {}, {}, {} -%}
  {%- for column in columns -%}
    {% do values.update({column.name: tidemark.compared_value(column, 'image.' ~ tidemark.quoted_name(column.name), zone)}) %}
  {%- endfor -%}
  {%- set judged_by = {
    'ignore-insert-value-expr': ('insert', 'post'),
    'ignore-update-old-value-expr': ('update', 'pre'),
    'ignore-update-new-value-expr': ('update', 'post'),
    'ignore-delete-value-expr': ('delete', 'pre')
  } -%}
  {%- for number in filters -%}
    {%- for key, expression in tidemark.changefeed_setting('event_filters')[number].value_expressions.items() -%}
      {%- set op, image = judged_by[key] -%}
      {%- set made = adapter.value_condition(expression, columns, values, 'filter.event-filters[' ~ number ~ '].' ~ key ~ ', table ' ~ table) -%}
      {%- if made.problem -%}
        {% do problems.update({op: made.problem}) %}
        {%- set condition = 'cast(raise_error(' ~ tidemark.text_literal(made.problem) ~ ') as boolean)' -%}
      {%- elif made.columns -%}
        {%- set fields = [] -%}
        {%- for name in made.columns -%}{% do fields.append(tidemark.quoted_name(name) ~ ' string') %}{%- endfor -%}
        {%- set condition = 'exists(array(from_json(row_changes.' ~ image ~ ', ' ~ tidemark.text_literal(fields | join(', ')) ~ ')), image -> ' ~ made.sql ~ ')' -%}
      {%- else -%}
        {%- set condition = made.sql -%}
      {%- endif -%}
      {% do conditions.update({op: conditions[op] ~ ' or ' ~ condition if op in conditions else condition}) %}
    {%- endfor -%}
  {%- endfor -%}
  {{ return({'conditions': conditions, 'problems': problems}) }}
{% endmacro %}


{# A value of the warehouse (text) as expressions compare it. Dates and times stay texts, in the time zone of the log: all of them have a text, and zero dates have no Spark type. #}
{% macro compared_value(column, text, zone) %}
  {%- if column.type_name == 'timestamp' and zone -%}
    {{ return(tidemark.local_time(text, tidemark.text_literal(zone))) }}
  {%- elif column.type_name in ('date', 'datetime', 'timestamp') -%}
    {{ return(text) }}
  {%- endif -%}
  {{ return(tidemark.spark_value(column, text)) }}
{% endmacro %}


{% macro quoted_name(name) %}
  {{ return('`' ~ name | replace('`', '``') ~ '`') }}
{% endmacro %}


{# problems: (version, op) -> what is wrong. Versions that no row was written with are left alone. #}
{% macro check_value_problems(problems, row_changes) %}
  {%- if problems -%}
    {%- set version = tidemark.value_version('row_changes') -%}
    {%- set raised = [] -%}
    {%- for row in run_query(
      'select distinct ' ~ version ~ ', op from ' ~ row_changes ~ ' as row_changes where error_reason is null and '
      ~ version ~ ' in (' ~ tidemark.text_literals(problems.keys() | map('first') | unique | list) ~ ')'
    ) -%}
      {%- if (row[0], row[1]) in problems -%}{% do raised.append(problems[(row[0], row[1])]) %}{%- endif -%}
    {%- endfor -%}
    {%- if raised -%}
      {% do exceptions.raise_compiler_error(raised | unique | sort | join('; ')) %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
