"""Remove what nobody needs any more, by the vars keep_row_changes and keep_events, and say what was removed.

Never what a sink, a snapshot or a waiting transaction needs; leftovers of runs that died are removed, too. With --dry-run nothing changes. Everything else behind `clean` goes to dbt
as it is: give it the same --vars as your runs.
"""

from __future__ import annotations

from tidemark.cli.operation import run_operation

SUMMARY = "remove old row changes and events that nobody needs any more"
PASSES_ON = True


def add_arguments(parser) -> None:
    parser.usage = "tidemark clean [--dry-run] [DBT_ARGUMENT ...]"


def run(args) -> int:
    arguments = [argument for argument in args.passed_on if argument != "--dry-run"]
    return run_operation("clean", arguments, {"dry_run": len(arguments) < len(args.passed_on)})
