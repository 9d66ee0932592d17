"""Line plots as SVG, for pages of the documentation."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 16, 44
_COLOURS: Final = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")


class Line(NamedTuple):
    """Points from left to right; a dashed line is a bound or another's figure."""

    name: str
    points: Sequence[tuple[float, float]]
    is_dashed: bool = False


class Axis(NamedTuple):
    title: str
    low: float
    high: float
    ticks: Sequence[float]
    is_log: bool = False

    def place(self, value: float) -> float:
        """Where a value is: 0 at the low end, 1 at the high one."""
        low, high, at = (math.log(each) if self.is_log else each for each in (self.low, self.high, value))
        return min(max((at - low) / (high - low), 0.0), 1.0)


def svg_of(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    across, up = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(point: tuple[float, float]) -> str:
        return f"{LEFT + across * x.place(point[0]):.1f},{TOP + up * (1 - y.place(point[1])):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        *_grid(x, y, across, up),
    ]
    for number, line in enumerate(lines):
        colour = "#777" if line.is_dashed else _COLOURS[number % len(_COLOURS)]
        dashes = ' stroke-dasharray="6 4"' if line.is_dashed else ""
        points = " ".join(map(at, line.points))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dashes} points="{points}"/>')
        below = TOP + 14 + 20 * number
        parts.append(f'<path d="M{WIDTH - RIGHT + 12} {below}h22" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 40}" y="{below + 4}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _grid(x: Axis, y: Axis, across: int, up: int) -> Iterable[str]:
    for tick in x.ticks:
        place = LEFT + across * x.place(tick)
        yield f'<path d="M{place:.1f} {TOP}v{up}" stroke="#ddd"/>'
        yield f'<text x="{place:.1f}" y="{TOP + up + 16}" text-anchor="middle">{tick:,g}</text>'
    for tick in y.ticks:
        place = TOP + up * (1 - y.place(tick))
        yield f'<path d="M{LEFT} {place:.1f}h{across}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{tick:,g}</text>'
    yield f'<text x="{LEFT + across / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.title)}</text>'
    yield f'<text transform="translate(14 {TOP + up / 2}) rotate(-90)" text-anchor="middle">{escape(y.title)}</text>'
