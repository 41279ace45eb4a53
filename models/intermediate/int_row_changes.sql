-- one row per row change that a batch completed, with the schema in force at its place,
-- and one per frame whose rows cannot be decoded; the query gives transactions, whose rows are decoded where they are written
-- depends_on: {{ ref('stg_handshakes') }}, {{ ref('stg_ddl_events') }} (which say where the schemas are)
-- depends_on: {{ ref('log_segments') }} (which batches there are)
-- depends_on: {{ ref('stg_frames') }} (rows wait until what cannot be read is known)
{{ config(
    rows_from='int_transactions',
    decoder='tidemark_row_changes',
    decoder_options="{{ tojson({'schemas': tojson(tidemark.schemas_of_new_rows()), 'time_zones': tojson(tidemark.time_zones())}) }}"
) }}

with transactions as (
    select * from {{ ref('int_transactions') }} where batch_id > {{ tidemark.last_batch() }}
),

-- frames that are near each other in a log are decoded together, by tasks with as much to do each
final as (
    select /*+ repartition_by_range(file, `offset`) */
        upstream_id,
        file,
        `offset`,
        seq,
        batch_id
    from transactions
    sort by batch_id, file, `offset`
)

select * from final
