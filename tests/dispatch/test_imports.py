"""Rooms import one way: encoders ask the dispatch rules, which know nothing of encoders."""

import ast
from pathlib import Path

import tidemark.dispatch


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_dispatch_imports_no_encoder():
    files = sorted(Path(tidemark.dispatch.__file__).parent.glob("*.py"))
    assert files
    assert [
        path.name for path in files if any(name.startswith("tidemark.encode") for name in imported(path))
    ] == []
