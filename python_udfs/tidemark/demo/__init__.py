"""Demo event logs: a shop in one or several TiDB clusters, seen through the event streams that TiCDC would write.

    dice, clock      numbers and timestamps that depend on the seed alone
    tables, values   the tables of the shop, and what their rows hold
    column_types     SQL to columns as TiDB describes them
    population       which rows exist: who writes what in a round, last writer wins between clusters
    batches          row changes to transactions and BatchDML events
    dispatchers      sequence numbers and epochs
    statements       DDL events
    upstream         the stream of one cluster
    shop             all clusters, round by round
    files            log files that appear whole or not at all

Memory does not depend on the number of rows: only a window of rows can still change, and the values of a row are computed from a number that its
last write drew, never stored.
"""
