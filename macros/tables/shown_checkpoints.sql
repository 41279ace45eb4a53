{#
  One row per upstream with the ts up to which rows are shown: statements count as far as rows do, also where a run ended before it had chosen the winners.

  as_of_ts: of a snapshot.
#}
{% macro shown_checkpoints(as_of_ts=none) %}
    select
        upstream_id,
        {{ 'max(checkpoint_ts)' if as_of_ts is none else as_of_ts ~ 'L' }} as shown_ts
    from {{ ref('int_checkpoints') }}
    {% if as_of_ts is none -%}
        where batch_id <= {{ tidemark.shown_batch() }}
    {% endif -%}
    group by upstream_id
{%- endmacro %}
