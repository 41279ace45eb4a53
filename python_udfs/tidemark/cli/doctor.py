"""Look for what is wrong with a storage tree: gaps, stale indexes, rows that go back in time or come twice, schema files that
do not match, what an interrupted run left. Works on the output of TiCDC too. Nothing is changed.

PREFIX is a folder or a URL such as s3://bucket/prefix. Give the sink URI and changefeed file that the tree was written with if its CSV
form is not the default, or for access to an object store. Exit status: 0 nothing found (notes do not count), 1 something found,
2 the tree cannot be looked at.
"""

from __future__ import annotations

import sys
from dataclasses import asdict

from tidemark.cli.given_tree import given_tree
from tidemark.config.load import load
from tidemark.sinks.storage.doctor import Report, examine
from tidemark.sinks.storage.errors import StoreError
from tidemark.wire.json_form import json_line
from tidemark.words import counted

SUMMARY = "look for what is wrong with a storage tree"


def add_arguments(parser) -> None:
    parser.add_argument(
        "prefix",
        metavar="PREFIX",
        nargs="?",
        help="the folder or URL of the tree (default: that of --sink-uri)",
    )
    parser.add_argument("--sink-uri", metavar="URI", help="the sink URI that the tree was written with")
    parser.add_argument("--changefeed", metavar="FILE", help="the changefeed's TOML file")
    parser.add_argument("--names-only", action="store_true", help="do not open data files")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")


def run(args) -> int:
    if args.prefix is None and args.sink_uri is None:
        raise StoreError("give the PREFIX of a tree, or its --sink-uri")
    settings = load(args.changefeed, args.sink_uri) if args.sink_uri or args.changefeed else None
    store = given_tree(args.prefix, settings)
    if not store.list(""):
        raise StoreError(f"{store.shown} is empty or does not exist")
    report = examine(store, settings, with_data=not args.names_only)
    if args.json:
        sys.stdout.buffer.write(json_line({**asdict(report), "clean": report.is_clean}))
    else:
        _print(report)
    return 0 if report.is_clean else 1


def _print(report: Report) -> None:
    for finding in report.findings:
        print(f"{finding.level}: {finding.path}: {finding.text} [{finding.code}]")
    print(
        f"{report.prefix}: {counted(report.tables, 'table')}, {counted(report.files, 'data file')}, "
        f"{counted(report.rows, 'row change')}, checkpoint {report.checkpoint}; "
        f"{counted(sum(finding.level != 'note' for finding in report.findings), 'finding')}"
    )
