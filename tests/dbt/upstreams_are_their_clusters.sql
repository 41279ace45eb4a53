-- one row per upstream whose logs do not come from the one cluster that it names
{{ config(severity='warn') }}

select * from {{ ref('cluster_ids') }} where problem is not null
