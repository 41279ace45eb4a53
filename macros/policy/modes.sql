{# How the changefeed of this run behaves. Each is a macro of its own, so that a unit test can set it. #}

{% macro is_active_active_mode() %}
  {{ return(tidemark.changefeed_setting('enable_active_active')) }}
{% endmacro %}


{% macro is_bdr_mode() %}
  {{ return(tidemark.changefeed_setting('bdr_mode')) }}
{% endmacro %}


{# Whether a soft delete may start from a zero time as well as from NULL. #}
{% macro soft_delete_starts_from_zero() %}
  {{ return(tidemark.changefeed_setting('soft_delete_from_zero')) }}
{% endmacro %}


{# The start ts of transactions that the changefeed leaves out. #}
{% macro ignored_start_ts() %}
  {{ return(tidemark.changefeed_setting('ignored_start_ts')) }}
{% endmacro %}


{# Whether an event filter leaves out updates by the columns that they change. #}
{% macro has_ignored_columns() %}
  {{ return(tidemark.changefeed_setting('event_filters') | selectattr('ignored_columns') | list | length > 0) }}
{% endmacro %}


{# Whether an event filter leaves out row changes by an expression on their values. #}
{% macro has_value_expressions() %}
  {{ return(tidemark.changefeed_setting('event_filters') | selectattr('value_expressions') | list | length > 0) }}
{% endmacro %}


{# Whether several dispatchers may read one table, each a part of it (`enable-table-across-nodes`). #}
{% macro are_tables_split() %}
  {{ return(tidemark.changefeed_setting('tables_across_nodes')) }}
{% endmacro %}


{# The rules that say under which names tables are written; none where all keep theirs. #}
{% macro routing() %}
  {{ return(tidemark.changefeed_setting('routing')) }}
{% endmacro %}


{# Only the embedded adapter reads changefeed files; elsewhere the defaults hold, and other settings are refused. #}
{% macro changefeed_setting(name) %}
  {%- set defaults = {
    'enable_active_active': false,
    'bdr_mode': false,
    'soft_delete_from_zero': true,
    'active_active_columns': ['_tidb_origin_ts', '_tidb_softdelete_time', '_tidb_commit_ts'],
    'case_sensitive': false,
    'routing': none,
    'filter_rules': ['*.*'],
    'event_filters': [],
    'ignored_start_ts': [],
    'sink_kind': 'none',
    'keeps_nothing': false,
    'progress_interval_seconds': 1800,
    'sink_place': '',
    'protocol': '',
    'has_column_selectors': false,
    'default_topic': '',
    'table_id_paths': false,
    'partition_folders': true,
    'tables_across_nodes': false,
    'partition_count': none,
    'dispatch_skips_missing_columns': true
  } -%}
  {%- if not tidemark.reads_settings() or not execute -%}
    {{ return(defaults[name]) }}
  {%- endif -%}
  {{ return(adapter.changefeed_settings()[name]) }}
{% endmacro %}


{# Whether this target reads changefeeds and sinks. One that does not would ignore them without a word, so it must not be given any. #}
{% macro reads_settings() %}
  {%- if target.type == 'tidemark' -%}
    {{ return(true) }}
  {%- endif -%}
  {%- set given = [] -%}
  {%- for name in ['changefeed', 'sink_uri'] -%}
    {%- if var(name, none) -%}{% do given.append(name) %}{%- endif -%}
  {%- endfor -%}
  {%- if (var('compat', none) or 'design') not in ['design', {'base': 'design'}] -%}{% do given.append('compat') %}{%- endif -%}
  {%- if given -%}
    {% do exceptions.raise_compiler_error(
      "a target of `type: " ~ target.type ~ "` does not read the vars changefeed, sink_uri and compat: filters, dispatch rules and sinks would be ignored. Leave out "
      ~ given | join(', ') ~ ', or use a profile of `type: tidemark`'
    ) %}
  {%- endif -%}
  {{ return(false) }}
{% endmacro %}
