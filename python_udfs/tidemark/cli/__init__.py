"""The `tidemark` command line.

A command is one module of this package with `SUMMARY`, `add_arguments(parser)` and `run(args) -> int`, and one line in COMMANDS. With `PASSES_ON` it gets
the words behind it as `args.passed_on`. Modules are imported when their command is called, so that `tidemark --help` answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from importlib.metadata import version

from tidemark.errors import TidemarkError
from tidemark.interrupts import Interrupted, handled

# command name -> module of this package
COMMANDS = {
    "run": "run",
    "clean": "clean",
    "upgrade": "upgrade",
    "demo-log": "demo_log",
    "events": "events",
    "rows": "rows",
    "explain": "explain",
    "check": "check",
    "dispatch": "dispatch",
    "dispatch-report": "dispatch_report",
    "encode": "encode",
    "doctor": "doctor",
    "convert": "convert",
}

DESCRIPTION = """\
Tidemark reads TiCDC's binary change-event streams. The tables come from `dbt build`; this command looks into logs and
settings. `tidemark COMMAND --help` explains one command.
"""


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    chosen = next((word for word in argv if not word.startswith("-")), None)
    called = f"tidemark {chosen}" if chosen in COMMANDS else "tidemark"
    try:
        with handled():
            args = _arguments(argv, chosen)
            # `tidemark events LOG | head` ends quietly.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            return args.run(args)
    except TidemarkError as error:
        print(f"{called}: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{called}: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except Interrupted as interrupted:
        print(f"{called}: {interrupted}", file=sys.stderr)
        return interrupted.status


def _arguments(argv: list[str], chosen: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tidemark", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"tidemark {version('tidemark')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    passed_on: list[str] = []
    for name, module_name in COMMANDS.items():
        if chosen in COMMANDS and name != chosen:
            continue
        module = importlib.import_module(f"tidemark.cli.{module_name}")
        command = subparsers.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add_arguments(command)
        command.set_defaults(run=module.run)
        if name == chosen and getattr(module, "PASSES_ON", False):
            argv, passed_on = _split(argv, name)
    args = parser.parse_args(argv)
    args.passed_on = passed_on
    return args


def _split(argv: list[str], command: str) -> tuple[list[str], list[str]]:
    """Our words, and those behind a command that passes them on. A call for help is ours."""
    behind = argv.index(command) + 1
    if {"-h", "--help"} & set(argv[behind:]):
        return [*argv[:behind], "--help"], []
    return argv[:behind], argv[behind:]
