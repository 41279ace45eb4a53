{#
  dbt's own, except that a test that has passed is not run again while nothing has changed that its result depends on: its text and settings, the code that runs it, and the rows of
  all that it reads, through views down to tables. Where something of that is not known it runs, and always if it stores its failures or did not pass.
  A test of keys that has passed looks only at the keys of later batches, where the model has only grown since (new_keys.sql).
#}
{% materialization test, adapter='tidemark' %}
  {%- set growing = tidemark_growing_models() -%}
  {%- set noted = {'state': tidemark_test_state(), 'steady': tidemark_test_state(growing) if growing else none, 'batch': tidemark_last_batch(growing)} -%}
  {%- set passed = {} if var('run_all_tests', false) else adapter.passed_test(model['unique_id']) -%}
  {%- if noted.state and passed.get('state') == noted.state -%}
    {%- call noop_statement(
      'main', 'unchanged', res=adapter.unchanged_test(['failures', 'should_warn', 'should_error'], [[0, false, false]])
    ) -%}{{ sql }}{%- endcall -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {% do adapter.note_test(model['unique_id'], none) %}
  {%- if noted.steady and passed.get('steady') == noted.steady -%}
    {%- call statement('main', fetch_result=true) -%}
      {{ get_test_sql(
        tidemark_new_keys_sql(passed.get('batch')), config.get('fail_calc'), config.get('warn_if'), config.get('error_if'), limit=none
      ) }}
    {%- endcall -%}
    {%- set done = {'relations': []} -%}
  {%- else -%}
    {%- set done = dbt.materialization_test_default() -%}
  {%- endif -%}
  {%- set found = load_result('main').table.rows[0] -%}
  {%- if noted.state and not found['should_warn'] and not found['should_error'] -%}
    {% do adapter.note_test(model['unique_id'], noted) %}
  {%- endif -%}
  {{ return(done) }}
{% endmaterialization %}


{#
  A unit test depends on code alone: its query holds the rows that are given, and what macros have made of the model. One that reads a table all the same always runs.
#}
{% materialization unit, adapter='tidemark' %}
  {%- set is_known = target.schema ~ '.' not in sql and target.schema ~ '_store.' not in sql and adapter.is_steady(sql) -%}
  {%- set state = adapter.test_digest([sql, config.get('expected_rows'), config.get('expected_sql')]) if is_known else none -%}
  {%- if state and not var('run_all_tests', false) and adapter.passed_test(model['unique_id']).get('state') == state -%}
    {%- call noop_statement('main', 'unchanged', res=adapter.unchanged_test(['unchanged', 'actual_or_expected'], [])) -%}{{ sql }}{%- endcall -%}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {% do adapter.note_test(model['unique_id'], none) %}
  {%- set done = dbt.materialization_unit_default() -%}
  {%- if state and adapter.is_as_expected(load_result('main').table) -%}
    {% do adapter.note_test(model['unique_id'], {'state': state}) %}
  {%- endif -%}
  {{ return(done) }}
{% endmaterialization %}


{# All that the result of the calling test depends on, as one short text; none where not all of it is known. Rows that were added to growing models do not count. #}
{% macro tidemark_test_state(growing=[]) %}
  {%- set relations = tidemark_reads(model) -%}
  {%- if relations is none or should_store_failures() or not adapter.is_steady(sql) -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set texts = [sql] -%}
  {%- for name in ('fail_calc', 'warn_if', 'error_if', 'limit', 'severity') -%}{% do texts.append(config.get(name)) %}{%- endfor -%}
  {%- for relation in relations -%}
    {%- set state = adapter.relation_state(relation, growing) -%}
    {%- if state is none -%}
      {{ return(none) }}
    {%- endif -%}
    {% do texts.append(state) %}
  {%- endfor -%}
  {{ return(adapter.test_digest(texts)) }}
{% endmacro %}
