-- one row per row change, with what becomes of it: the op after policy (null: not sent) and the reason
{% set ignored_start_ts = tidemark.ignored_start_ts() %}

with row_changes as (
    select * from {{ ref('int_row_changes') }} where error_reason is null
),

table_filter as (
    select * from {{ ref('table_filter') }}
),

described as (
    select
        row_changes.*,
        table_filter.is_replicated,
        {{ tidemark.routed('table_filter.target_schema_name', 'row_changes.schema_name') }} as target_schema_name,
        {{ tidemark.routed('table_filter.target_table_name', 'row_changes.table_name') }} as target_table_name,
        {{ tidemark.is_ignored_event() }} as is_ignored,
        coalesce(row_changes.key, concat('["', row_changes.upstream_id, '","', hex(row_changes.row_key), '"]')) as row_identity,
        row_changes.is_active_active or row_changes.is_soft_delete as is_flagged,
        row_changes.op = 'update'
        and {{ tidemark.is_not_deleted('row_changes.old_softdelete_time') }}
        and not {{ tidemark.is_not_deleted('row_changes.new_softdelete_time') }} as becomes_deleted
    from row_changes
    left join table_filter
        on row_changes.schema_name = table_filter.schema_name and row_changes.table_name = table_filter.table_name
),

judged as (
    select
        *,
        case
            when not is_replicated then 'filtered_table'
            {% if ignored_start_ts %}
                when start_ts in ({{ ignored_start_ts | join(', ') }}) then 'ignored_transaction'
            {% endif %}
            when is_ignored then 'ignored_event'
            {% if tidemark.is_bdr_mode() %}
                when origin_ts is not null then 'replicated_row'
            {% endif %}
            {% if tidemark.is_active_active_mode() %}
                when op = 'delete' then 'delete_ignored'
                else 'last_writer_wins'
            {% else %}
                when is_flagged and op = 'delete' then 'hard_delete_dropped'
                when is_flagged and becomes_deleted then 'soft_delete'
                else 'passed'
            {% endif %}
        end as reason
    from described
),

final as (
    select
        upstream_id,
        schema_name,
        table_name,
        target_schema_name,
        target_table_name,
        row_identity as key,
        old_key,
        case
            when reason in ('passed', 'last_writer_wins') then op
            when reason = 'soft_delete' then 'delete'
        end as policy_op,
        reason,
        op,
        pre,
        case when reason <> 'soft_delete' then post end as post,
        {% if tidemark.is_active_active_mode() %}
            coalesce(origin_ts, commit_ts) as version_ts,
        {% else %}
            commit_ts as version_ts,
        {% endif %}
        commit_ts,
        origin_ts,
        start_ts,
        seq,
        row_number,
        is_active_active,
        is_flagged and not {{ tidemark.is_not_deleted('new_softdelete_time') }} as is_soft_deleted,
        table_id,
        physical_table_id,
        table_version,
        table_info_version,
        dispatcher_id,
        epoch,
        file,
        `offset`,
        batch_id
    from judged
)

select * from final
