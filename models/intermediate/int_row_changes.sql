-- one row per row change that a batch completed, with the schema in force at its place;
-- and one per frame whose rows cannot be decoded
with decoded as (
    select * from {{ tidemark.row_changes() }}
),

transactions as (
    select * from {{ ref('int_transactions') }} where batch_id > {{ tidemark.last_batch() }}
),

final as (
    select
        decoded.*,
        transactions.batch_id
    from decoded
    inner join transactions
        on
            decoded.file = transactions.file
            and decoded.`offset` = transactions.`offset`
            and coalesce(decoded.seq, transactions.seq) = transactions.seq
)

select * from final
