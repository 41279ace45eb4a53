{#
  The test `primary_key` of a model that has only grown, by batches, since it passed: only rows of later batches can repeat a key. They are compared with each other, and with those
  earlier rows whose columns are in the range of theirs, which parquet finds without reading the others. Of a view whose rows of a key change together, all rows of the keys that are in
  later batches are looked at; Spark reads no others.
#}

{#
  The models with which the one under test grows, as relations; none where the test has to look at all rows. It is the tested model itself if it keeps all batches, or what the
  argument `rows_of` names.
#}
{% macro tidemark_growing_models() %}
  {%- set tested, relations = graph.nodes.get(model.get('attached_node')), [] -%}
  {%- if not tested or 'macro.tidemark.test_primary_key' not in model['depends_on']['macros']
    or (config.get('fail_calc'), config.get('warn_if'), config.get('error_if'), config.get('limit')) != ('count(*)', '!= 0', '!= 0', none) -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set names = model['test_metadata']['kwargs'].get('rows_of', tested.name) -%}
  {%- for name in ([names] if names is string else names) -%}
    {%- set node = tidemark_model_named(name, tested.package_name) -%}
    {%- if not node or node.config.materialized != 'batched' or node.config.get('keeps') or node.config.get('takes_over') or node.config.get('merged_by') -%}
      {{ return(none) }}
    {%- endif -%}
    {% do relations.append(api.Relation.create(schema=node.schema, identifier=node.alias)) %}
  {%- endfor -%}
  {{ return(relations) }}
{% endmacro %}


{% macro tidemark_model_named(name, package) %}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name == name and node.package_name == package -%}
    {{ return(node) }}
  {%- endfor -%}
{% endmacro %}


{# The last batch that the first of some models has handled. #}
{% macro tidemark_last_batch(relations) %}
  {%- set kept = adapter.table_property(relations[0], 'tidemark.kept') if relations and load_relation(relations[0]) is not none else none -%}
  {{ return(fromjson(kept).batch if kept else none) }}
{% endmacro %}


{# The keys of the calling test that rows after a batch repeat, or that have a null in them. #}
{% macro tidemark_new_keys_sql(batch) %}
  {%- set tested, arguments = graph.nodes[model['attached_node']], model['test_metadata']['kwargs'] -%}
  {%- set relation, columns = api.Relation.create(schema=tested.schema, identifier=tested.alias), arguments['columns'] -%}
  {%- set rows, key = get_where_subquery(relation), columns | join(', ') -%}
  {%- if arguments.get('keys_of') -%}
    {%- set node = tidemark_model_named(arguments['keys_of'], tested.package_name) -%}
    {%- set new_rows = api.Relation.create(schema=node.schema, identifier=node.alias) ~ ' where batch_id > ' ~ batch -%}
    {%- set row_count = run_query('select count(*) from ' ~ new_rows)[0][0] -%}
  with rows as (
    select * from {{ rows }}
  ),

  new_keys as (
    select key from {{ new_rows }}
  ),

  looked_at as (
    select {% if row_count <= 1000000 %}/*+ broadcast(new_keys) */ {% endif %}rows.*
    from rows
    left semi join new_keys on rows.key = new_keys.key
  )
  {%- else -%}
    {%- set range = tidemark_range_of_new_keys(relation, rows, columns, batch) -%}
  with new_keys as (
    select {{ key }} from {{ rows }} where batch_id > {{ batch }}
  ),

  known_keys as (
    select {{ key }} from {{ rows }} where batch_id <= {{ batch }} and {{ range.condition }}
  ),

  repeated_keys as (
    select {% if range.row_count <= 1000000 %}/*+ broadcast(new_keys) */ {% endif %}known_keys.*
    from known_keys
    left semi join new_keys
      on {% for column in columns %}known_keys.{{ column }} = new_keys.{{ column }}{% if not loop.last %} and {% endif %}{% endfor %}
  ),

  looked_at as (
    select * from new_keys
    union all
    select * from repeated_keys
  )
  {%- endif %}

  select {{ key }}, count(*) as row_count
  from looked_at
  group by {{ key }}
  having count(*) > 1{% for column in columns %} or {{ column }} is null{% endfor %}
{% endmacro %}


{# How many rows there are after a batch, and a condition that holds for every row with a key of theirs. #}
{% macro tidemark_range_of_new_keys(relation, rows, columns, batch) %}
  {%- set ordered, limits, conditions = [], ['count(*)'], [] -%}
  {%- for column in adapter.get_columns_in_relation(relation) if column.dtype in ('bigint', 'int', 'string') -%}
    {%- for name in columns if name.strip('`') == column.name -%}
      {% do ordered.append(name) %}
      {% do limits.extend(['cast(min(' ~ name ~ ') as string)', 'cast(max(' ~ name ~ ') as string)']) %}
    {%- endfor -%}
  {%- endfor -%}
  {%- set found = run_query('select ' ~ limits | join(', ') ~ ' from ' ~ rows ~ ' where batch_id > ' ~ batch)[0] -%}
  {%- for name in ordered -%}
    {%- set smallest, largest = found[2 * loop.index - 1], found[2 * loop.index] -%}
    {%- if smallest is not none -%}
      {% do conditions.append(name ~ ' between ' ~ tidemark_literal(smallest) ~ ' and ' ~ tidemark_literal(largest)) %}
    {%- endif -%}
  {%- endfor -%}
  {{ return({'row_count': found[0], 'condition': (conditions or ['false' if not found[0] else 'true']) | join(' and ')}) }}
{% endmacro %}
