"""A report as text for people, as JSON for programs and as an SVG plot."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tidemark.dispatch.report import Report, Spread

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
                _share(spread.moved_keys, spread.keys),
                _share(spread.broken_keys, spread.keys),
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
        lines.append(f"and {len(counts) - len(shown)} partitions with fewer rows")
    return lines


def _share(part: int, whole: int) -> str:
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


# Plot: one panel per rule set, one bar per partition, one colour per topic, a line at the mean.
_WIDTH, _PANEL, _MARGIN, _LEFT, _CHART = 960, 220, 24, 72, 130
_COLOURS = ("#3b6ea5", "#c8553d", "#588b5e", "#8a6bab", "#b8892b", "#4b9aa8", "#7a7a7a")


def as_svg(spreads: Sequence[Spread]) -> str:
    height = _MARGIN + _PANEL * len(spreads)
    tallest = (
        max((rows for spread in spreads for topic in spread.topics for rows in topic.rows), default=0) or 1
    )
    panels = [_panel(spread, _MARGIN + _PANEL * i, tallest) for i, spread in enumerate(spreads)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
            ' font-family="sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
            *panels,
            "</svg>",
            "",
        ]
    )


def _panel(spread: Spread, top: int, tallest: int) -> str:
    counts = [
        (t, topic.topic, p, rows)
        for t, topic in enumerate(spread.topics)
        for p, rows in enumerate(topic.rows)
    ]
    base = top + 34 + _CHART
    step = (_WIDTH - _LEFT - _MARGIN) / max(1, len(counts))
    gap = min(4.0, step / 5)
    title = (
        f"{spread.name}: skew {spread.skew:.2f}, moved keys {_share(spread.moved_keys, spread.keys)}, "
        f"keys out of order {_share(spread.broken_keys, spread.keys)}"
    )
    parts = [f'<text x="{_LEFT}" y="{top + 12}" font-weight="bold">{escape(title)}</text>']
    for label, rows in ((tallest, tallest), (0, 0)):
        y = base - _CHART * rows / tallest
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{label}</text>')
    for i, (t, topic, partition, rows) in enumerate(counts):
        bar = _CHART * rows / tallest
        parts.append(
            f'<rect x="{_LEFT + i * step + gap / 2:.2f}" y="{base - bar:.2f}" width="{step - gap:.2f}" height="{bar:.2f}"'
            f' fill="{_COLOURS[t % len(_COLOURS)]}"><title>{escape(topic)}/{partition}: {rows}</title></rect>'
        )
    every = max(1, -(-len(counts) // 40))
    for i, (_, _, partition, _) in enumerate(counts):
        if i % every == 0:
            parts.append(
                f'<text x="{_LEFT + (i + 0.5) * step:.1f}" y="{base + 14}" text-anchor="middle" font-size="10" fill="#555">{partition}</text>'
            )
    parts.append(f'<line x1="{_LEFT}" y1="{base}" x2="{_WIDTH - _MARGIN}" y2="{base}" stroke="#555"/>')
    if counts:
        mean = base - _CHART * sum(rows for *_, rows in counts) / len(counts) / tallest
        parts.append(
            f'<line x1="{_LEFT}" y1="{mean:.1f}" x2="{_WIDTH - _MARGIN}" y2="{mean:.1f}" stroke="#222" stroke-dasharray="4 3"/>'
        )
    parts += _legend(spread, base + 32)
    return "\n".join(parts)


def _legend(spread: Spread, y: int) -> list[str]:
    parts, x = [], _LEFT
    for t, topic in enumerate(spread.topics):
        width = 26 + 7 * len(topic.topic)
        if x + width > _WIDTH - 80:
            parts.append(f'<text x="{x}" y="{y}" fill="#555">and {len(spread.topics) - t} more</text>')
            break
        parts.append(
            f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{_COLOURS[t % len(_COLOURS)]}"/>'
        )
        parts.append(f'<text x="{x + 14}" y="{y}" fill="#333">{escape(topic.topic)}</text>')
        x += width
    return parts
