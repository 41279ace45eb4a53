"""A report as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.dispatch.report import Report, Spread
from tidemark.words import counted

_TEXT_PARTITIONS = 32  # above, the text form shows the fullest partitions only
_BAR = 40


def as_text(report: Report, spreads: Sequence[Spread]) -> str:
    lines = []
    if report.sampled > 1:
        lines += [f"keys are estimated from 1 in {report.sampled}", ""]
    lines += _aligned(
        [("rules", "rows", "partitions", "skew", "keys", "moved keys", "keys out of order")]
        + [
            (
                spread.name,
                str(spread.rows),
                str(sum(len(topic.rows) for topic in spread.topics)),
                f"{spread.skew:.2f}",
                str(spread.keys),
                share(spread.moved_keys, spread.keys),
                share(spread.broken_keys, spread.keys),
            )
            for spread in spreads
        ]
    )
    for spread in spreads:
        lines += ["", spread.name, *_indented(_table_lines(spread)), "", *_indented(_partition_lines(spread))]
    return "\n".join(lines)


def _table_lines(spread: Spread) -> list[str]:
    return _aligned(
        [("table", "rule", "partition by", "topic", "rows", "keys", "moved keys", "keys out of order")]
        + [
            (
                f"{table.schema}.{table.table}",
                "-" if table.route.rule is None else str(table.route.rule),
                table.route.partition,
                table.route.topic,
                str(table.rows),
                str(table.keys),
                str(table.moved_keys),
                str(table.broken_keys),
            )
            for table in spread.tables
        ]
    )


def _partition_lines(spread: Spread) -> list[str]:
    counts = [
        (topic.topic, partition, rows) for topic in spread.topics for partition, rows in enumerate(topic.rows)
    ]
    shown = counts
    if len(counts) > _TEXT_PARTITIONS:
        shown = sorted(counts, key=lambda count: -count[2])[:_TEXT_PARTITIONS]
    most = max((rows for _, _, rows in counts), default=0) or 1
    lines = _aligned(
        [("topic", "partition", "rows", "")]
        + [
            (topic, str(partition), str(rows), "#" * -(-rows * _BAR // most))
            for topic, partition, rows in shown
        ]
    )
    if len(shown) < len(counts):
        lines.append(f"and {counted(len(counts) - len(shown), 'partition')} with fewer rows")
    return lines


def share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else str(part)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def as_json(report: Report, spreads: Sequence[Spread]) -> dict:
    """Keys are counted in the sample and scaled: `keys_sampled` is 1 where all were counted."""
    return {
        "keys_sampled": report.sampled,
        "rule_sets": [
            {
                "name": spread.name,
                "rows": spread.rows,
                "skew": round(spread.skew, 4),
                "keys": spread.keys,
                "moved_keys": spread.moved_keys,
                "keys_out_of_order": spread.broken_keys,
                "topics": [
                    {"topic": topic.topic, "rows_per_partition": list(topic.rows)} for topic in spread.topics
                ],
                "tables": [
                    {
                        "schema": table.schema,
                        "table": table.table,
                        "rule": table.route.rule,
                        "partition": table.route.partition,
                        "topic": table.route.topic,
                        "rows": table.rows,
                        "keys": table.keys,
                        "moved_keys": table.moved_keys,
                        "keys_out_of_order": table.broken_keys,
                    }
                    for table in spread.tables
                ],
            }
            for spread in spreads
        ],
    }
