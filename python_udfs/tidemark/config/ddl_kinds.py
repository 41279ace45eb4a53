"""The kinds of DDL that `ignore-event` can name, with TiDB's numbers of the statements behind each name."""

from __future__ import annotations

# Statements that TiCDC also knows as `alter table`.
_ALTER_TABLE = {
    "rename table": (14, 47),
    "modify table comment": (17,),
    "modify table charset and collate": (22,),
    "add table partition": (19,),
    "drop table partition": (20,),
    "truncate table partition": (23,),
    "exchange table partition": (42,),
    "reorganize table partition": (64,),
    "alter table partitioning": (71,),
    "remove table partitioning": (72,),
    "add column": (5, 37),
    "drop column": (6, 38),
    "modify column": (12,),
    "set default value": (15,),
    "rebase auto id": (13,),
    "add primary key": (32,),
    "drop primary key": (33,),
    "create index": (7,),
    "drop index": (8,),
    "rename index": (18,),
    "alter index visibility": (41,),
    "alter ttl info": (65,),
    "alter ttl remove": (67,),
    "multi schema change": (61,),
}

DDL_KINDS: dict[str, tuple[int, ...]] = {
    "create database": (1,),
    "create schema": (1,),
    "drop database": (2,),
    "drop schema": (2,),
    "modify schema charset and collate": (26,),
    "create table": (3, 60),
    "drop table": (4,),
    "truncate table": (11,),
    "recover table": (25,),
    "create view": (21,),
    "drop view": (24,),
    **_ALTER_TABLE,
    "alter table": tuple(number for numbers in _ALTER_TABLE.values() for number in numbers),
}
