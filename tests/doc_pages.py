"""The pages of the documentation: their blocks, the commands that they show, and their links."""

from __future__ import annotations

import re
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
]
# What the first line behind ``` may say.
LANGUAGES = {"sh", "text", "yaml", "toml", "json", "sql", "python"}
_PROGRAM = re.compile(
    r"(\.venv/bin/)?(tidemark|dbt|make|python3?|pip|uv|sqlfluff|ruff|pytest|\.ci/run)(?=\s|$)"
)
_FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its fence."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    page: str
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, text: str | None = None) -> list[Block]:
    text = read(page) if text is None else text
    return [
        Block(page, text.count("\n", 0, fence.start()) + 1, fence[2].strip(), textwrap.dedent(fence[3]))
        for fence in _FENCE.finditer(text)
    ]


def commands(block: Block) -> list[Command]:
    """The commands of a block, in order. One goes on over the next line after a backslash or within quotes."""
    found, waiting, first = [], "", 0
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if not waiting:
            first = number
        waiting += line + "\n"
        if not _is_whole(waiting):
            continue
        if shlex.split(waiting, comments=True):
            found.append(Command(block.page, first, waiting.rstrip("\n")))
        waiting = ""
    assert not waiting, f"{block.place}: the last command is not complete"
    return found


def _is_whole(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return not text.endswith("\\\n")


def is_command(text: str) -> bool:
    return bool(_PROGRAM.match(text))


def mentions(page: str) -> list[Command]:
    """Commands within sentences. Optional parts in brackets are given."""
    # A block becomes empty lines, so that line numbers stay.
    text = _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), read(page))
    return [
        Command(page, text.count("\n", 0, span.start()) + 1, re.sub(r"\[((?:--|[A-Z]).*?)\]", r"\1", span[1]))
        for span in _SPAN.finditer(text)
        if is_command(span[1])
    ]


def links(page: str) -> list[str]:
    return _LINK.findall(_FENCE.sub("", read(page)))


def anchors(page: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", read(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
