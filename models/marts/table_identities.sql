-- one row per table of an upstream, and per partition that a statement moved or dropped: the table that its rows are part of now
{#-
  A table: planning it again for each of those that ask for it takes longer than building it. Other checkpoints and
  winners leave it as it is as long as no other statement counts.
-#}
{{ config(materialized='table', only_if_changed=['table_versions', 'stg_ddl_events']) }}

{{ tidemark.tables_at(none) }}
