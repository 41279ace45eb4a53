"""Where the golden vectors are, for every suite."""

import json
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def golden(path: str) -> Path:
    return GOLDEN / path


def jsonl(path: str) -> list:
    return [json.loads(line) for line in golden(path).read_text(encoding="utf-8").split("\n") if line]
