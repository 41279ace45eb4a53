"""Check a changefeed file and a sink URI.

All findings are printed at once: errors, which stop Tidemark, and notes on settings that cannot change what is sent,
such as those that only tune a running TiCDC. A setting that Tidemark does not implement is an error. Secrets are never printed. The exit status is 0 without errors, 1 with errors.
"""

from __future__ import annotations

import argparse
import json

from tidemark.cli.compat_option import add_compat
from tidemark.config.load import checked
from tidemark.config.resolved import resolved
from tidemark.errors import TidemarkError
from tidemark.words import counted

SUMMARY = "check a changefeed file and a sink URI"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "changefeed",
        nargs="?",
        metavar="CHANGEFEED",
        help="changefeed file: TOML, or by its extension JSON or YAML",
    )
    parser.add_argument("--sink-uri", metavar="URI", help="sink URI, in quotes")
    add_compat(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object: the findings, and every setting in force"
    )


class NothingToCheck(TidemarkError):
    """Neither a changefeed nor a sink URI was given."""


def run(args: argparse.Namespace) -> int:
    if not args.changefeed and not args.sink_uri:
        raise NothingToCheck("give a changefeed file, --sink-uri URI, or both")
    settings, findings = checked(args.changefeed, args.sink_uri, args.compat)
    errors = sum(finding.severity == "error" for finding in findings)
    notes = len(findings) - errors
    if args.json:
        answer = {
            "ok": errors == 0,
            "errors": errors,
            "notes": notes,
            "findings": [finding.as_dict() for finding in findings],
            "resolved": resolved(settings),
        }
        print(json.dumps(answer, ensure_ascii=False, indent=2))
    else:
        for finding in sorted(findings, key=lambda finding: finding.severity):
            print(f"{finding.severity}: {finding}")
        print(f"{counted(errors, 'error')}, {counted(notes, 'note')}")
    return 1 if errors else 0
