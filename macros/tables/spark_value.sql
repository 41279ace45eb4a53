{#
  A value of the warehouse (text) as the Spark type of its MySQL column.

  integers -> int or bigint, bigint unsigned -> decimal(20,0), decimal -> decimal (text above 38 digits), float, double,
  date -> date, datetime and timestamp -> timestamp (a zero date is no date: null), time, char, text, json, vector -> string,
  enum and set -> the member names, bit -> bigint, binary and blob -> binary.
#}
{% macro spark_value(column, text) %}
  {%- set kind = column.type_name -%}
  {%- if column.name == '_tidb_origin_ts' and tidemark.is_active_active_mode() -%}
    {{ return('cast(origin_ts as decimal(20, 0))') }}
  {%- elif kind in ('tinyint', 'smallint', 'mediumint', 'year') or (kind == 'int' and not column.is_unsigned) -%}
    {{ return('cast(' ~ text ~ ' as int)') }}
  {%- elif kind == 'int' or (kind == 'bigint' and not column.is_unsigned) -%}
    {{ return('cast(' ~ text ~ ' as bigint)') }}
  {%- elif kind == 'bit' -%}
    {{ return('cast(' ~ text ~ ' as ' ~ ('decimal(20, 0)' if column.flen > 63 else 'bigint') ~ ')') }}
  {%- elif kind == 'bigint' -%}
    {{ return('cast(' ~ text ~ ' as decimal(20, 0))') }}
  {%- elif kind == 'decimal' and column.flen <= 38 -%}
    {{ return('cast(' ~ text ~ ' as decimal(' ~ column.flen ~ ', ' ~ [column.decimal, 0] | max ~ '))') }}
  {%- elif kind in ('float', 'double') -%}
    {{ return('cast(' ~ text ~ ' as ' ~ kind ~ ')') }}
  {%- elif kind == 'date' -%}
    {{ return('try_cast(' ~ text ~ ' as date)') }}
  {%- elif kind in ('datetime', 'timestamp') -%}
    {{ return('try_cast(' ~ text ~ ' as timestamp)') }}
  {%- elif kind == 'enum' -%}
    {{ return("element_at(array('', " ~ tidemark.text_literals(column.elems) ~ '), cast(' ~ text ~ ' as int) + 1)') }}
  {%- elif kind == 'set' -%}
    {{ return(
      'array_join(filter(array(' ~ tidemark.text_literals(column.elems) ~ '), (member, place) -> '
      ~ 'cast(cast(' ~ text ~ " as decimal(20, 0)) div cast(pow(2, place) as decimal(20, 0)) as bigint) % 2 = 1), ',')"
    ) }}
  {%- elif kind in ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob') -%}
    {{ return("encode(" ~ text ~ ", 'ISO-8859-1')") }}
  {%- else -%}
    {{ return(text) }}
  {%- endif -%}
{% endmacro %}


{% macro text_literals(texts) %}
  {%- set literals = [] -%}
  {%- for text in texts -%}{% do literals.append(tidemark.text_literal(text)) %}{%- endfor -%}
  {{ return(literals | join(', ')) }}
{% endmacro %}
