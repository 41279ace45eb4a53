{#
  The test `primary_key` of a model that only grows, by batches: keys that were different stay so, and only rows of later batches can repeat one. They are compared with each other, and with
  those earlier rows whose columns are in the range of theirs, which parquet finds without reading the others.
#}

{#
  The model that the one under test grows with, as a relation; none where the test has to look at all rows. It is the tested model itself if it keeps all batches, or what the
  argument `rows_of` names: the model from which each row comes, with its batch.
#}
{% macro tidemark_growing_model() %}
  {%- set tested = graph.nodes.get(model.get('attached_node')) -%}
  {%- if not tested or 'macro.tidemark.test_primary_key' not in model['depends_on']['macros']
    or (config.get('fail_calc'), config.get('warn_if'), config.get('error_if'), config.get('limit')) != ('count(*)', '!= 0', '!= 0', none) -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set name = model['test_metadata']['kwargs'].get('rows_of', tested.name) -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.name == name and node.package_name == tested.package_name -%}
    {%- if node.config.materialized == 'batched' and not node.config.get('keeps') and not node.config.get('takes_over') and not node.config.get('merged_by') -%}
      {{ return(api.Relation.create(schema=node.schema, identifier=node.alias)) }}
    {%- endif -%}
  {%- endfor -%}
  {{ return(none) }}
{% endmacro %}


{# The last batch that a model has handled. #}
{% macro tidemark_last_batch(relation) %}
  {%- set kept = adapter.table_property(relation, 'tidemark.kept') if relation and load_relation(relation) is not none else none -%}
  {{ return(fromjson(kept).batch if kept else none) }}
{% endmacro %}


{# The keys of the calling test that rows after a batch repeat, or that have a null in them. #}
{% macro tidemark_new_keys_sql(batch) %}
  {%- set tested = graph.nodes[model['attached_node']] -%}
  {%- set relation, columns = api.Relation.create(schema=tested.schema, identifier=tested.alias), model['test_metadata']['kwargs']['columns'] -%}
  {%- set rows, key = get_where_subquery(relation), columns | join(', ') -%}
  {%- set range = tidemark_range_of_new_keys(relation, rows, columns, batch) -%}
  {%- set new_keys = 'select ' ~ key ~ ' from ' ~ rows ~ ' where batch_id > ' ~ batch -%}
  with new_keys as (
    {{ new_keys }}
  ),

  known_keys as (
    select {{ key }} from {{ rows }} where batch_id <= {{ batch }} and {{ range.condition }}
  ),

  repeated_keys as (
    select {% if range.row_count <= 1000000 %}/*+ broadcast(new_keys) */ {% endif %}known_keys.*
    from known_keys
    left semi join new_keys
      on {% for column in columns %}known_keys.{{ column }} = new_keys.{{ column }}{% if not loop.last %} and {% endif %}{% endfor %}
  )

  select {{ key }}, count(*) as row_count
  from (select * from new_keys union all select * from repeated_keys)
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
