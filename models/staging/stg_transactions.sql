-- one row per transaction of a table, as a DML event announces it; its rows are in the log
with frames as (
    select * from {{ tidemark.event_frames('dml', payload='transactions') }}
),

decoded as (
    select
        frames.*,
        tidemark_dml(frame) as event
    from frames
),

final as (
    select
        upstream_id,
        file,
        `offset`,
        transaction.dispatcher_id,
        transaction.epoch,
        transaction.seq,
        transaction.physical_table_id,
        transaction.start_ts,
        transaction.commit_ts,
        transaction.row_count,
        {{ tidemark.bad_frame_columns() }},
        batch_id
    from decoded
        lateral view outer explode(event.transactions) exploded as transaction
)

select * from final
