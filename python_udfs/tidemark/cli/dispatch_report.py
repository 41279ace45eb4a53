"""Compare dispatch rules on the row changes of logs: rows per partition, skew, moved keys, keys out of order.

--changefeed has the rules in force, every --candidate another file whose rules might take their place. Row changes that a file leaves out do not count for it. A moved key has a change that goes to
another topic or partition than under the rules in force; a key is out of order when its changes go to more than one partition.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tidemark.cli.compat_option import add_compat
from tidemark.cli.row_batches import row_batches
from tidemark.config import load
from tidemark.dispatch.report import DEFAULT_MAX_KEYS, Report
from tidemark.dispatch.report_forms import as_json, as_text
from tidemark.dispatch.report_plot import as_svg

SUMMARY = "compare dispatch rules on a history of row changes"


def add_arguments(parser) -> None:
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help="a file of frames, a folder of such files, or a glob"
    )
    parser.add_argument("--changefeed", metavar="FILE", help="the changefeed in force (default: no rules)")
    parser.add_argument(
        "--candidate",
        metavar="FILE",
        action="append",
        default=[],
        help="a changefeed to compare; may be repeated",
    )
    parser.add_argument(
        "--sink-uri", metavar="URI", required=True, help="a kafka:// or pulsar:// URI with partition-num"
    )
    parser.add_argument(
        "--candidate-sink-uri",
        metavar="URI",
        help="the URI of the candidates, say with another partition-num",
    )
    add_compat(parser)
    parser.add_argument(
        "--max-keys",
        type=_positive,
        default=DEFAULT_MAX_KEYS,
        help="keys to remember; beyond, a sample (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, help="also draw rows per partition as an SVG file"
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def run(args) -> int:
    rule_sets = [("in force", load(args.changefeed, args.sink_uri, args.compat))]
    for file in args.candidate:
        rule_sets.append((file, load(file, args.candidate_sink_uri or args.sink_uri, args.compat)))
    report = Report(rule_sets, args.max_keys)
    for batch in row_batches(args.logs, args.command):
        report.add(batch)
    spreads = report.spreads()
    if args.plot:
        args.plot.write_text(as_svg(spreads), encoding="utf-8")
    print(
        json.dumps(as_json(report, spreads), ensure_ascii=False, indent=2)
        if args.json
        else as_text(report, spreads)
    )
    sys.stdout.flush()
    return 0
