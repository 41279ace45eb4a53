-- one row per dispatcher, as it stands after the last batch: whose table it reads, how far, and whether it still counts
{{ config(materialized='view') }}

-- few rows: in one partition, nothing behind them is shuffled
with epochs as (
    select /*+ coalesce(1) */ * from {{ ref('int_epochs') }}
    where batch_id = (select max(epochs.batch_id) from {{ ref('int_epochs') }} as epochs)
),

ddl_events as (
    select /*+ coalesce(1) */
        *,
        from_json(
            body, 'blocked_tables struct<TableIDs: array<bigint>>, need_added_tables array<struct<TableID: bigint>>'
        ) as influence
    from {{ ref('stg_ddl_events') }}
    where error_reason is null
),

-- what statements did to the tables of an upstream; every dispatcher has a copy of a statement, a set keeps one of each
statements as (
    select
        upstream_id,
        flatten(
            collect_set(transform(dropped_table_ids, id -> struct(id as table_id, finished_ts as ts)))
        ) as dropped,
        -- a truncated table is there with its new id, and read from the statement on
        flatten(
            collect_set(
                case
                    when ddl_type in (4, 11) then transform(tables, item -> struct(item.table_id, finished_ts as ts))
                end
            )
        ) as dropped_tables,
        collect_set(case when ddl_type = 2 then struct(schema_name, finished_ts as ts) end) as dropped_schemas,
        flatten(
            collect_set(
                case
                    when ddl_type in (14, 47)
                        then transform(
                            tables, item -> struct(finished_ts as ts, item.schema_name, item.table_name, item.table_id)
                        )
                end
            )
        ) as renamed,
        -- a statement about a table with partitions blocks all that there are; `create table like`, those of the other table
        flatten(
            collect_set(
                case
                    when size(tables) = 1 and tables[0].is_partition
                        then transform(
                            array_union(
                                dropped_table_ids,
                                array_union(
                                    coalesce(
                                        if(ddl_type <> 3, array_remove(influence.blocked_tables.tableids, 0), null), array()
                                    ),
                                    coalesce(influence.need_added_tables.tableid, array())
                                )
                            ),
                            id -> struct(tables[0].table_id as table_id, id as partition_id)
                        )
                end
            )
        ) as partitions
    from ddl_events
    group by upstream_id
),

read_tables as (
    select
        upstream_id,
        dispatcher_id,
        max(table_id) as table_id,
        -- the table of a dispatcher that has sent no row is known, but not which partition of it
        coalesce(max(physical_table_id), max(table_id)) as physical_table_id,
        max(physical_table_id) is not null as is_partition_known,
        min(start_ts) as start_ts,
        coalesce(max(resolved_ts), max(start_ts)) as resolved_ts,
        -- the table trigger has no table, receives all statements and goes on
        coalesce(max(table_id), max(physical_table_id)) is null as is_trigger,
        case when coalesce(max(table_id), max(physical_table_id)) is not null then min(dropped_ts) end as dropped_ts,
        max(epoch) as epoch,
        max_by(last_seq, epoch) as last_seq,
        collect_list(struct(start_ts as ts, schema_name, table_name, table_id)) as names,
        collect_list(
            struct(
                epoch,
                start_ts,
                coalesce(complete_ts, 0) as complete_ts,
                coalesce(resolved_ts, start_ts, complete_ts, 0) as resolved_ts,
                last_seq + 1 as expected_seq,
                -- a resolved event carries the seq of the event before it, which therefore exists
                least(array_min(waiting_events.seq), array_min(waiting_resolved.seq)) as found_seq
            )
        ) as epochs
    from epochs
    group by upstream_id, dispatcher_id
),

-- a later epoch sends again what comes after its start: a gap is none if all up to that start is there
dispatchers as (
    select
        read_tables.* except (epochs, names),
        filter(
            transform(
                filter(read_tables.epochs, item -> item.found_seq is not null),
                gap -> struct(
                    gap.epoch,
                    gap.expected_seq,
                    gap.found_seq,
                    array_max(filter(read_tables.epochs, item -> item.epoch <= gap.epoch).resolved_ts) as resolved_ts,
                    array_max(filter(read_tables.epochs, item -> item.epoch <= gap.epoch).complete_ts) as complete_ts
                )
            ),
            gap -> not exists(
                read_tables.epochs, later -> later.epoch > gap.epoch and coalesce(later.start_ts <= gap.complete_ts, false)
            )
        ) as gaps,
        -- a table that is renamed keeps its dispatcher
        concat(
            read_tables.names,
            filter(coalesce(statements.renamed, array()), item -> item.table_id = read_tables.table_id)
        ) as names,
        statements.dropped,
        statements.dropped_tables,
        statements.dropped_schemas,
        filter(statements.partitions, item -> item.table_id = read_tables.table_id).partition_id as partitions
    from read_tables
    left join statements on read_tables.upstream_id = statements.upstream_id
),

drops as (
    select
        * except (dropped_ts, dropped, dropped_tables, dropped_schemas, names),
        array_max(names).schema_name as schema_name,
        array_max(names).table_name as table_name,
        filter(dropped, item -> array_contains(partitions, item.table_id)) as dropped_partitions,
        least(
            dropped_ts,
            array_min(filter(dropped, item -> item.table_id = physical_table_id and start_ts <= item.ts).ts),
            array_min(filter(dropped_tables, item -> item.table_id = table_id and start_ts < item.ts).ts),
            array_min(
                filter(
                    dropped_schemas,
                    item -> start_ts <= item.ts
                    and item.schema_name = array_max(filter(names, name -> name.ts <= item.ts)).schema_name
                ).ts
            )
        ) as dropped_ts
    from dispatchers
),

siblings as (
    select
        *,
        collect_list(
            case
                when is_partition_known and start_ts is not null
                    then struct(start_ts, resolved_ts, dispatcher_id, physical_table_id)
            end
        ) over (partition by upstream_id, table_id) as readers,
        -- those that have sent no row yet
        sort_array(
            collect_list(
                case when not is_partition_known and table_id is not null and dropped_ts is null then resolved_ts end
            ) over (partition by upstream_id, table_id)
        ) as idle_resolved_ts,
        max(case when not is_partition_known then start_ts end) over (
            partition by upstream_id, table_id
        ) as idle_start_ts,
        collect_list(struct(start_ts, resolved_ts)) over (
            partition by upstream_id, {{ 'physical_table_id' if tidemark.are_tables_split() else 'table_id' }}
        ) as beginnings,
        max(case when is_trigger then struct(resolved_ts, dispatcher_id) end) over (
            partition by upstream_id, table_id
        ) as first_trigger
    from drops
),

retirements as (
    select
        *,
        array_min(gaps.complete_ts) as gap_ts,
        -- a dispatcher whose table is read by a later one was re-created elsewhere;
        -- of those that began at one ts, the one ahead counts
        array_min(
            filter(
                readers,
                item -> is_partition_known
                and item.physical_table_id = siblings.physical_table_id
                and struct(item.start_ts, item.resolved_ts, item.dispatcher_id)
                > struct(siblings.start_ts, siblings.resolved_ts, siblings.dispatcher_id)
            ).start_ts
        ) as replaced_ts,
        -- how many idle ones there are beyond the partitions that are left to read; none if not all partitions are known
        case
            when is_partition_known or size(array_except(readers.physical_table_id, partitions)) > 0 then 0
            else
                size(idle_resolved_ts)
                - size(array_except(array_except(partitions, dropped_partitions.table_id), readers.physical_table_id))
        end as surplus_count,
        greatest(idle_start_ts, array_max(dropped_partitions.ts)) as changed_ts,
        -- whether only where it began tells it from later ones
        {{ 'is_partition_known or ' if tidemark.are_tables_split() }}not is_partition_known
        and coalesce(size(partitions), 0) = 0 as is_known_by_start,
        -- those of a table that began at one ts, and the last of them
        transform(
            array_distinct(beginnings.start_ts),
            start -> struct(
                start as start_ts,
                size(filter(beginnings, other -> other.start_ts = start)) as size,
                array_min(filter(beginnings, other -> other.start_ts = start).resolved_ts) as resolved_ts
            )
        ) as generations
    from siblings
),

-- the surplus of the idle ones are those that stay behind when all others have gone on since the partitions changed
outcomes as (
    select
        *,
        least(
            case when coalesce(gap_ts >= dropped_ts - 1, true) then dropped_ts end,
            {% if not tidemark.are_tables_split() %}
                case when coalesce(gap_ts >= replaced_ts, true) then replaced_ts end,
            {% endif %}
            case
                when
                    gap_ts is null
                    and size(partitions) > 0
                    and surplus_count > 0
                    and greatest(resolved_ts, changed_ts)
                    < coalesce(get(idle_resolved_ts, surplus_count), {{ 2 ** 63 - 1 }})
                    then changed_ts
            end,
            -- a changefeed that is resumed reads all parts of a table anew, and leaves all readers from before behind:
            -- which part each of them reads need not be known
            case
                when is_known_by_start
                    then array_min(
                        filter(
                            generations,
                            later -> later.start_ts > start_ts
                            and later.start_ts <= least(resolved_ts, gap_ts)
                            and later.size >= array_max(
                                filter(generations, earlier -> earlier.start_ts < later.start_ts).size
                            )
                            and later.resolved_ts > array_max(
                                filter(beginnings, earlier -> earlier.start_ts < later.start_ts).resolved_ts
                            )
                        ).start_ts
                    )
            end,
            -- it also has another table trigger, which began where the first one was
            case
                when is_trigger and gap_ts is null and struct(resolved_ts, dispatcher_id) < first_trigger then resolved_ts
            end
        ) as retired_ts
    from retirements
),

final as (
    select
        upstream_id,
        dispatcher_id,
        table_id,
        physical_table_id,
        is_partition_known,
        schema_name,
        table_name,
        start_ts,
        case when retired_ts is null and size(gaps) > 0 then array_min(gaps.resolved_ts) else resolved_ts end as resolved_ts,
        epoch,
        last_seq,
        gaps,
        retired_ts,
        case
            when retired_ts is not null then 'retired'
            when size(gaps) > 0 then 'blocked'
            when resolved_ts is null and physical_table_id is null then 'trigger'
            else 'live'
        end as status
    from outcomes
)

select * from final
