{#
  The order in which writes of a key are applied, which does not depend on how rows arrived. A transaction that moves a row to another partition deletes it in one table and inserts
  it in the other, each with a seq of its own: the row is still there, so deletes come first.
#}
{% macro applied_order() -%}
commit_ts, upstream_id, start_ts, policy_op <> 'delete', seq, row_number
{%- endmacro %}


{# What decides between two writes of a key: the later version wins, on a tie the one applied later. #}
{% macro write_order() -%}
struct(version_ts, {{ tidemark.applied_order() }})
{%- endmacro %}


{# What is kept of a write beside its order. In active-active mode there are no deletes: every write has a new row, and the old ones need not be read. #}
{% macro kept_write() -%}
struct(
            table_id,
            table_version,
            {{ 'post' if tidemark.is_active_active_mode() else 'coalesce(post, pre)' }} as row_values,
            policy_op = 'delete' or is_soft_deleted as is_deleted
        )
{%- endmacro %}


{#
  The writes of some rows of row_policy that are sent, with these columns of the key: their order, and what is kept of them. An update that takes the key from a row leaves a tombstone under the old one;
  in active-active mode there are no deletes, and the target keeps what it has.
#}
{% macro applied_writes(rows, key_columns) %}
    select
        {{ key_columns | join(',\n        ') }},
        {{ tidemark.write_order() }} as write_order,
        {{ tidemark.kept_write() }} as write
    from {{ rows }}
    {%- if not tidemark.is_active_active_mode() %}
    union all
    select
        {{ key_columns | join(',\n        ') }},
        {{ tidemark.write_order() }} as write_order,
        {{ tidemark.kept_write() }} as write
    from (
        select
            * except (key, old_key, policy_op, post),
            old_key as key,
            'delete' as policy_op,
            cast(null as string) as post
        from {{ rows }}
        where old_key is not null
    )
    {%- endif %}
{%- endmacro %}
