"""Turn a storage tree, ours or TiCDC's, into an event log: the form that all other commands and the dbt project read.

PREFIX is a folder or a URL such as s3://bucket/prefix. Give the sink URI and changefeed file that the tree was written with if its CSV form is not
the default, or for access to an object store. The rows up to the tree's checkpoint are written; called again, only those that came since. The tree must have commit ts
(include-commit-ts, enable-tidb-extension). In a dbt run a tree needs no conversion by hand: event_logs takes {upstream_id, tree}.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.cli.given_tree import given_tree
from tidemark.config.load import load
from tidemark.sinks.storage.tree_log import write_tree_log
from tidemark.words import counted

SUMMARY = "turn a storage tree into an event log"


def add_arguments(parser) -> None:
    parser.add_argument(
        "prefix",
        metavar="PREFIX",
        nargs="?",
        help="the folder or URL of the tree (default: that of --sink-uri)",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="the folder of the event log")
    parser.add_argument("--sink-uri", metavar="URI", help="the sink URI that the tree was written with")
    parser.add_argument("--changefeed", metavar="FILE", help="the changefeed's TOML file")


def run(args) -> int:
    if args.prefix is None and args.sink_uri is None:
        print("tidemark convert: give the PREFIX of a tree, or its --sink-uri", file=sys.stderr)
        return 2
    settings = load(args.changefeed, args.sink_uri) if args.sink_uri or args.changefeed else None
    store = given_tree(args.prefix, settings)
    done = write_tree_log(store, settings, Path(args.out))
    for warning in done.warnings:
        print(f"tidemark convert: {warning}", file=sys.stderr)
    if done.file is None:
        print(f"{args.out} is up to date: checkpoint {done.checkpoint}")
    else:
        print(
            f"{done.file}: {counted(done.rows, 'row change')}, {done.start} < commit ts <= {done.checkpoint}"
        )
    return 0
