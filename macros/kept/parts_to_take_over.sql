{#
  The newest parts of the calling model that are no larger than what comes after them: what the model writes now has their rows in it, so that there are few parts, and a row is
  rewritten only as often as its part doubles. How much is new, the model says from whose rows all its own come (`rows_from`).
#}
{% macro parts_to_take_over() %}
  {%- if not tidemark.is_kept() or not tidemark.new_batches() or not tidemark.kept(this).parts -%}
    {{ return([]) }}
  {%- endif -%}
  {%- set taken, gathered = [], namespace(bytes=tidemark.kept(ref(config.get('rows_from'))).written, is_done=false) -%}
  {%- for part, bytes in tidemark.kept(this).parts | reverse -%}
    {%- if not gathered.is_done and bytes <= gathered.bytes -%}
      {% do taken.append(part) %}
      {%- set gathered.bytes = gathered.bytes + bytes -%}
    {%- else -%}
      {%- set gathered.is_done = true -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(taken) }}
{% endmacro %}
