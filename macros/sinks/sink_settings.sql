{# What a sink model says that has sent nothing. #}
{% macro nothing_sent() %}
  {{ return('SINK THROWS ALL ROWS AWAY' if tidemark.changefeed_setting('keeps_nothing') else 'nothing to send') }}
{% endmacro %}


{# The settings of the sink as functions and data sources take them, without secrets. Only the embedded adapter reads them; elsewhere there is no sink. #}
{% macro sink_settings() %}
  {%- if not tidemark.reads_settings() or not execute -%}
    {{ return('{"changefeed": null, "sink_uri": null, "compat": "design"}') }}
  {%- endif -%}
  {{ return(adapter.sink_settings()) }}
{% endmacro %}
