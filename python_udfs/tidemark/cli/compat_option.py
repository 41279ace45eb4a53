"""The option `--compat` of the commands that take a changefeed."""

from __future__ import annotations

import argparse
from typing import Any

import yaml

from tidemark.compat import Compat, CompatError


def add_compat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compat",
        metavar="COMPAT",
        type=_compat,
        default="design",
        help="design (default) follows the design documents, ticdc the shipped TiCDC; "
        "'{base: design, SWITCH: ticdc}' sets single switches",
    )


def _compat(text: str) -> Any:
    try:
        given = yaml.safe_load(text)
        Compat.of(given)
    except yaml.YAMLError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a name nor a YAML or JSON mapping") from None
    except CompatError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    return given
