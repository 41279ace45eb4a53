{#
  A value of the warehouse (text) as the Spark type of its MySQL column; what does not fit is null.

  integers -> int or bigint, bigint unsigned -> decimal(20,0), decimal -> decimal (text above 38 digits), float, double,
  date -> date, datetime and timestamp -> timestamp (a zero date is no date: null), time, char, text, json, vector -> string,
  enum and set -> the member names, bit -> bigint, binary and blob -> binary.

  written_as: the column that the value was written to, if its type was another one.
#}
{% macro spark_value(column, text, written_as=none) %}
  {%- set kind = column.type_name -%}
  {%- set is_other = written_as is not none and not tidemark.is_written_alike(column, written_as) -%}
  {%- set numbers = ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year', 'bit') -%}
  {#- the number of a member, not its name, becomes a number -#}
  {%- set is_member_number = is_other and written_as.type_name in ('enum', 'set') and kind in numbers + ('decimal', 'float', 'double') -%}
  {%- set text = tidemark.shown_text(written_as, text) if is_other and not is_member_number else text -%}
  {#- a number with a fraction is rounded, as MySQL does -#}
  {%- set number = 'round(try_cast(' ~ text ~ ' as decimal(38, 10)))' if is_other and written_as.type_name not in numbers else text -%}
  {%- if column.name == '_tidb_origin_ts' and tidemark.is_active_active_mode() -%}
    {{ return('cast(origin_ts as decimal(20, 0))') }}
  {%- elif kind in ('tinyint', 'smallint', 'mediumint', 'year') or (kind == 'int' and not column.is_unsigned) -%}
    {{ return('try_cast(' ~ number ~ ' as int)') }}
  {%- elif kind == 'int' or (kind == 'bigint' and not column.is_unsigned) -%}
    {{ return('try_cast(' ~ number ~ ' as bigint)') }}
  {%- elif kind == 'bit' -%}
    {{ return('try_cast(' ~ number ~ ' as ' ~ ('decimal(20, 0)' if column.flen > 63 else 'bigint') ~ ')') }}
  {%- elif kind == 'bigint' -%}
    {{ return('try_cast(' ~ number ~ ' as decimal(20, 0))') }}
  {%- elif kind == 'decimal' and column.flen <= 38 -%}
    {{ return('try_cast(' ~ text ~ ' as decimal(' ~ column.flen ~ ', ' ~ [column.decimal, 0] | max ~ '))') }}
  {%- elif kind in ('float', 'double') -%}
    {{ return('try_cast(' ~ text ~ ' as ' ~ kind ~ ')') }}
  {%- elif kind == 'date' -%}
    {{ return('try_cast(' ~ text ~ ' as date)') }}
  {%- elif kind in ('datetime', 'timestamp') -%}
    {{ return(tidemark.rounded_time('try_cast(' ~ text ~ ' as timestamp)', [column.decimal, 0] | max, written_as)) }}
  {%- elif kind in ('enum', 'set') and is_other and written_as.type_name not in numbers -%}
    {%- set members = 'filter(array(' ~ tidemark.text_literals(column.elems) ~ '), member -> ' -%}
    {%- if kind == 'set' -%}
      {{ return('if(' ~ text ~ ' is null, null, array_join(' ~ members ~ 'array_contains(split(lower(' ~ text ~ "), ','), lower(member))), ','))") }}
    {%- endif -%}
    {#- '' is what a value became that was no member; some collations tell upper and lower case apart -#}
    {{ return(
      'case when ' ~ text ~ " = '' then '' else coalesce(get(" ~ members ~ 'member = ' ~ text ~ '), 0), get(' ~ members ~ 'lower(member) = lower(' ~ text ~ ')), 0)) end'
    ) }}
  {%- elif kind in ('enum', 'set') -%}
    {{ return(tidemark.member_names(column, text)) }}
  {%- elif tidemark.is_bytes(column) -%}
    {{ return('encode(' ~ text ~ ", '" ~ ('UTF-8' if is_other else 'ISO-8859-1') ~ "')") }}
  {%- else -%}
    {{ return(text) }}
  {%- endif -%}
{% endmacro %}


{# A timestamp with this many digits of its second, of which it may have been written with more; a half is rounded up, as MySQL does. #}
{% macro rounded_time(value, digits, written_as) %}
  {%- if written_as is none or digits == 6 or written_as.type_name in ('datetime', 'timestamp') and written_as.decimal <= digits -%}
    {{ return(value) }}
  {%- endif -%}
  {%- set unit = 10 ** (6 - digits) -%}
  {%- set micros = 'unix_micros(' ~ value ~ ') + ' ~ unit // 2 -%}
  {{ return('timestamp_micros(' ~ micros ~ ' - pmod(' ~ micros ~ ', ' ~ unit ~ '))') }}
{% endmacro %}


{# The value of a column in a row, which is a map. source: as column_sources has it. #}
{% macro source_value(column, source) %}
  {%- if 'column' in source -%}
    {{ return(tidemark.spark_value(column, 'row[' ~ tidemark.text_literal(source.column.name) ~ ']', source.column)) }}
  {%- endif -%}
  {%- set default = source.default_of.get('origin_default') -%}
  {%- if default is none -%}
    {{ return('null') }}
  {%- elif source.default_of.type_name == 'bit' -%}
    {%- set digits = "'" ~ default[2:-1] ~ "'" if default.startswith("x'") else 'hex(encode(' ~ tidemark.text_literal(default) ~ ", 'UTF-8'))" -%}
    {{ return(tidemark.spark_value(column, 'conv(' ~ digits ~ ', 16, 10)', source.default_of)) }}
  {%- endif -%}
  {{ return(tidemark.spark_value(column, tidemark.text_literal(default), {'type_name': 'default'})) }}
{% endmacro %}


{# Whether the warehouse writes the values of two columns in the same way. #}
{% macro is_written_alike(column, other) %}
  {%- if tidemark.is_bytes(column) or tidemark.is_bytes(other) -%}
    {{ return(tidemark.is_bytes(column) and tidemark.is_bytes(other)) }}
  {%- endif -%}
  {#- members that are added at the end leave the numbers of the others as they are -#}
  {%- set elems, other_elems = column.elems or [], other.elems or [] -%}
  {{ return(column.type_name == other.type_name and elems[:other_elems | length] == other_elems) }}
{% endmacro %}


{% macro is_bytes(column) %}
  {{ return(column.type_name in ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob')) }}
{% endmacro %}


{# A value as people see it, which is what a column of another type gets: members by name, bytes as the text they are. #}
{% macro shown_text(column, text) %}
  {%- if column.type_name in ('enum', 'set') -%}
    {{ return(tidemark.member_names(column, text)) }}
  {%- elif tidemark.is_bytes(column) -%}
    {{ return('try_validate_utf8(cast(encode(' ~ text ~ ", 'ISO-8859-1') as string))") }}
  {%- endif -%}
  {{ return(text) }}
{% endmacro %}


{# The names behind the number of an enum or set. #}
{% macro member_names(column, text) %}
  {%- set members = tidemark.text_literals(column.elems) -%}
  {%- if column.type_name == 'enum' -%}
    {{ return("get(array('', " ~ members ~ '), try_cast(' ~ text ~ ' as int))') }}
  {%- endif -%}
  {{ return(
    'if(' ~ text ~ ' is null, null, array_join(filter(array(' ~ members ~ '), (member, place) -> '
    ~ 'substr(reverse(conv(' ~ text ~ ", 10, 2)), place + 1, 1) = '1'), ','))"
  ) }}
{% endmacro %}


{% macro text_literals(texts) %}
  {%- set literals = [] -%}
  {%- for text in texts -%}{% do literals.append(tidemark.text_literal(text)) %}{%- endfor -%}
  {{ return(literals | join(', ')) }}
{% endmacro %}
