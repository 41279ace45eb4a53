{# The dispatch rules of the changefeed as rows; none where there is no changefeed. #}
{% macro configured_rules() %}
  {%- set rules = adapter.dispatch_rules() if tidemark.reads_settings() and execute else [] -%}
  {%- for rule in rules %}
    select
        {{ rule.rule_number }} as rule_number,
        cast(array({{ tidemark.text_literals(rule.matcher) }}) as array<string>) as matcher,
        {{ tidemark.text_literal(rule.topic_expression) }} as topic_expression,
        {{ tidemark.text_literal(rule.partition_expression) }} as partition_expression,
        {{ tidemark.text_literal(rule.kind) }} as kind,
        cast(array({{ tidemark.text_literals(rule.columns) }}) as array<string>) as columns,
        {{ tidemark.text_literal(rule.index_name) }} as index_name,
        cast({{ 'null' if rule.partition is none else rule.partition }} as int) as fixed_partition
    union all
  {%- endfor %}
    select
        cast(null as int) as rule_number,
        cast(array() as array<string>) as matcher,
        '' as topic_expression,
        '' as partition_expression,
        '' as kind,
        cast(array() as array<string>) as columns,
        '' as index_name,
        cast(null as int) as fixed_partition
    from values (1) as nothing (one)
    where false
{% endmacro %}
