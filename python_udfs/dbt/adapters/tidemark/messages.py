"""What a person sees of a Spark failure: the cause in its own words, without Java and Python stack traces."""

from __future__ import annotations

import re

# A Python task's failure carries the traceback of the worker; its last line is the message.
_PYTHON_ERROR = re.compile(
    r"^(?:[\w.]+\.)?(?P<name>[A-Z]\w*(?:Error|Exception|Shrank|NotFound|Busy|[A-Z]\w*)): (?P<text>.+)$"
)
_JAVA_FRAME = re.compile(r"^\s+at [\w.$]+\(|^\s*\.\.\. \d+ more|^JVM stacktrace|^Driver stacktrace")
# How the bridge to Java begins a failure that it has no class for.
_BRIDGE = re.compile(
    r"\AAn error occurred while calling \S+\n: (?:[\w$]+\.)*(?=[A-Z]\w*(?:Exception|Error)\b)"
)
_PLAN = re.compile(r"(; line \d+ pos \d+);\n.*", re.DOTALL)


def short_message(error: BaseException) -> str:
    text = _BRIDGE.sub("", str(error))
    inner = _worker_message(text)
    if inner is not None:
        return inner
    lines = []
    # Behind the place of the error Spark prints the plan of the whole query.
    for line in _PLAN.sub(r"\1", text).splitlines():
        if _JAVA_FRAME.match(line):
            break
        lines.append(line)
    return "\n".join(lines).strip() or type(error).__name__


def _worker_message(text: str) -> str | None:
    """The last line of the innermost Python traceback, when there is one."""
    if "Traceback (most recent call last)" not in text:
        return None
    last = text.rsplit("Traceback (most recent call last)", 1)[1]
    for line in last.splitlines()[1:]:
        if line.startswith((" ", "\t")) or not line.strip():
            continue
        match = _PYTHON_ERROR.match(line.strip())
        if match:
            return match["text"] if "tidemark" in line.split(":")[0] else f"{match['name']}: {match['text']}"
    return None
