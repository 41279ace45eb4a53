{#
  CTEs, the last of which, `names`, has the name that each table of each upstream is shown under: over all clusters, the one that was given to it last (docs/models.md, what a table is).

  versions: a CTE of the versions of tables that count.
#}
{% macro names_given_last(versions) %}
    compared_versions as (
        select
            *,
            lag(name) over (partition by upstream_id, table_id order by valid_from_ts) as earlier_name,
            lead(name) over (partition by upstream_id, table_id order by valid_from_ts) as later_name,
            -- a name is that of one table at a time
            lead(struct(table_id, ddl_type)) over (partition by upstream_id, name order by valid_from_ts) as follower
        from {{ versions }}
    ),

    -- truncate table, partition by, remove partitioning: the table goes on under another id and keeps its name
    named_versions as (
        select
            *,
            last(
                case
                    when earlier_name <> name then valid_from_ts
                    when earlier_name is null and coalesce(ddl_type not in (11, 71, 72), true) then 0
                end,
                true
            ) over (partition by upstream_id, name order by valid_from_ts) as named_ts
        from compared_versions
    ),

    -- one row per name that a table has had; the tables of a cluster that were renamed away from a name before count its generation
    held_names as (
        select
            upstream_id,
            table_id,
            name,
            min(valid_from_ts) as first_ts,
            -- there when the log began
            min_by(earlier_name is null and ddl_type is null, valid_from_ts) as is_found,
            coalesce(max(later_name <> name), false) as is_renamed_away,
            count_if(earlier_name <> name) as rename_count,
            max(
                struct(
                    valid_from_ts,
                    name,
                    named_ts,
                    valid_to_ts as gone_ts,
                    valid_to_ts is null and follower is null as is_there,
                    coalesce(follower.ddl_type in (11, 71, 72), false) as goes_on
                )
            ) as last_state
        from named_versions
        group by upstream_id, table_id, name
    ),

    counted_names as (
        select
            * except (last_state, rename_count),
            max(last_state) over (partition by upstream_id, table_id) as state,
            sum(rename_count) over (partition by upstream_id, table_id) as rename_count,
            count_if(is_renamed_away) over (
                partition by upstream_id, name
                order by first_ts, table_id
                rows between unbounded preceding and 1 preceding
            ) as earlier_count
        from held_names
    ),

    -- what is there when the log of a cluster begins is the latest table of that name that the others know
    found_names as (
        select
            *,
            if(is_found, max(earlier_count) over (partition by name order by first_ts), 0) as found_count
        from counted_names
    ),

    generations as (
        select
            *,
            earlier_count + first(found_count) over (partition by upstream_id, name order by first_ts, table_id) as generation
        from found_names
    ),

    -- clusters rename one after the other: a name that one of them has left is no longer the latest, whenever others get to it
    left_names as (
        select
            *,
            max((state.is_there or state.goes_on) and state.name <> name) over (partition by name, generation) as is_left
        from generations
    ),

    reached_0 as (
        select
            *,
            max(
                if(
                    state.is_there and state.name = name,
                    struct(
                        not is_left as is_last,
                        -- names that go in a circle are all left: who has gone further along it is ahead
                        if(is_left, rename_count, 0) as rename_count,
                        state.named_ts,
                        upstream_id,
                        table_id,
                        name
                    ),
                    null
                )
            ) over (partition by upstream_id, table_id) as latest
        from left_names
    ),

    -- the latest name goes from table to table: to those that one has met under some name, and over them to others
    {%- for step in range(3) %}
        met_{{ step }} as (
            select
                *,
                max(if(state.is_there or state.goes_on, latest, null)) over (partition by name, generation) as met
            from reached_{{ step }}
        ),

        reached_{{ step + 1 }} as (
            select
                * except (latest, met),
                max(met) over (partition by upstream_id, table_id) as latest
            from met_{{ step }}
        ),
    {%- endfor %}

    shown_0 as (
        select
            upstream_id,
            table_id,
            any_value(state) as state,
            coalesce(any_value(latest).name, any_value(state).name) as name
        from reached_3
        group by upstream_id, table_id
    ),

    -- what a cluster has side by side are two tables: where the history says otherwise, each keeps the name of its own cluster,
    -- and so does a table that would be shown under a name which is kept that way
    {%- for step in range(2) %}
        checked_{{ step }} as (
            select
                *,
                count_if(state.is_there) over (partition by upstream_id, name) as count_in_cluster
            from shown_{{ step }}
        ),

        shown_{{ step + 1 }} as (
            select
                upstream_id,
                table_id,
                state,
                if(max(count_in_cluster) over (partition by name) > 1, state.name, name) as name
            from checked_{{ step }}
        ),
    {%- endfor %}

    names as (
        select
            upstream_id,
            table_id,
            name
        from shown_2
    ),
{%- endmacro %}
