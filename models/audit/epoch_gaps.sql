-- one row per epoch of a dispatcher that begins behind what is complete of its table: what was sent between is not in the logs
with epochs as (
    select
        * except (table_id, physical_table_id),
        -- which partition a dispatcher reads is known with its first row only
        coalesce(
            max(physical_table_id) over (partition by upstream_id, dispatcher_id),
            max(table_id) over (partition by upstream_id, dispatcher_id)
        ) as physical_table_id
    from {{ ref('int_epochs') }}
    where batch_id = (select max(epochs.batch_id) from {{ ref('int_epochs') }} as epochs)
),

-- after its end there was nothing to send
known as (
    select
        *,
        case when dropped_ts is null then complete_ts else {{ 2 ** 63 - 1 }} end as known_ts
    from epochs
    where physical_table_id is not null and start_ts is not null
),

compared as (
    select
        *,
        max(known_ts) over (
            partition by upstream_id, physical_table_id
            order by start_ts, epoch, dispatcher_id
            rows between unbounded preceding and 1 preceding
        ) as complete_before_ts
    from known
),

final as (
    select
        upstream_id,
        dispatcher_id,
        epoch,
        physical_table_id,
        schema_name,
        table_name,
        complete_before_ts as complete_ts,
        start_ts
    from compared
    where start_ts > complete_before_ts
)

select * from final
