"""A report as an SVG plot: one panel per rule set, one bar per partition, one colour per topic, a dashed line at the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from tidemark.dispatch.report import Spread
from tidemark.dispatch.report_forms import share

_WIDTH, _PANEL, _MARGIN, _LEFT, _CHART = 960, 220, 24, 72, 130
_RIGHT = _WIDTH - 40
_COLOURS = ("#3b6ea5", "#c8553d", "#588b5e", "#8a6bab", "#b8892b", "#4b9aa8", "#7a7a7a")
_LABELS = 40  # partition numbers under a panel at most


def as_svg(spreads: Sequence[Spread]) -> str:
    height = _MARGIN + _PANEL * len(spreads)
    tallest = (
        max((rows for spread in spreads for topic in spread.topics for rows in topic.rows), default=0) or 1
    )
    topics = dict.fromkeys(topic.topic for spread in spreads for topic in spread.topics)
    colours = {topic: _COLOURS[i % len(_COLOURS)] for i, topic in enumerate(topics)}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    for i, spread in enumerate(spreads):
        lines += _panel(spread, _MARGIN + _PANEL * i, tallest, colours)
    return "\n".join([*lines, "</svg>", ""])


def _panel(spread: Spread, top: int, tallest: int, colours: Mapping[str, str]) -> list[str]:
    base = top + 34 + _CHART
    bars = [
        (topic.topic, partition, rows) for topic in spread.topics for partition, rows in enumerate(topic.rows)
    ]
    step = (_RIGHT - _LEFT) / max(1, len(bars))
    gap = min(4.0, step / 5)
    every = max(1, -(-len(bars) // _LABELS))
    title = (
        f"{spread.name}: skew {spread.skew:.2f}, moved keys {share(spread.moved_keys, spread.keys)}, "
        f"keys out of order {share(spread.broken_keys, spread.keys)}"
    )
    lines = [
        f'<text x="{_LEFT}" y="{top + 12}" font-weight="bold">{escape(title)}</text>',
        f'<text x="{_LEFT - 8}" y="{base - _CHART + 4}" text-anchor="end" fill="#555">{tallest} rows</text>',
        f'<text x="{_LEFT - 8}" y="{base + 4}" text-anchor="end" fill="#555">0</text>',
    ]
    for i, (topic, partition, rows) in enumerate(bars):
        x, height = _LEFT + i * step, _CHART * rows / tallest
        lines.append(
            f'<rect x="{x + gap / 2:.2f}" y="{base - height:.2f}" width="{step - gap:.2f}" height="{height:.2f}"'
            f' fill="{colours[topic]}"><title>{escape(topic)}/{partition}: {rows}</title></rect>'
        )
        if i % every == 0:
            lines.append(
                f'<text x="{x + step / 2:.1f}" y="{base + 14}" text-anchor="middle" font-size="10" fill="#555">{partition}</text>'
            )
    mean = base - _CHART * spread.rows / max(1, len(bars)) / tallest
    return [
        *lines,
        f'<line x1="{_LEFT}" y1="{base}" x2="{_RIGHT}" y2="{base}" stroke="#555"/>',
        f'<line x1="{_LEFT}" y1="{mean:.1f}" x2="{_RIGHT}" y2="{mean:.1f}" stroke="#222" stroke-dasharray="4 3"/>',
        f'<text x="{_RIGHT + 4}" y="{mean + 3:.1f}" font-size="10" fill="#222">mean</text>',
        *_legend(spread, base + 32, colours),
    ]


def _legend(spread: Spread, y: int, colours: Mapping[str, str]) -> list[str]:
    lines, x = [], _LEFT
    for i, topic in enumerate(spread.topics):
        width = 26 + 7 * len(topic.topic)
        if x + width > _RIGHT - 60:
            return [*lines, f'<text x="{x}" y="{y}" fill="#555">and {len(spread.topics) - i} more</text>']
        lines += [
            f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colours[topic.topic]}"/>',
            f'<text x="{x + 14}" y="{y}" fill="#333">{escape(topic.topic)}</text>',
        ]
        x += width
    return lines
