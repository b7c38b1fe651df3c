"""A small plot of a figure over its runs, as SVG text that is the same on every machine."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, STRIP, LEFT, TOP, HEIGHT = 640, 120, 16, 34, 56
"""Pixels: of the picture, of a figure's strip, and within it of the margin, the title, and the plot."""
LIMIT = re.compile(r"[≤<≥>] ?([\d.,]*\d)")


@dataclass(frozen=True, kw_only=True)
class History:
    """The values of a figure, the newest last."""

    what: str
    unit: str
    required: str
    values: tuple[float, ...]

    @property
    def limit(self) -> float | None:
        """The number in the requirement, if it is a bound with one."""
        found = LIMIT.findall(self.required)
        return float(found[0].replace(",", "")) if len(found) == 1 else None


def history_svg(histories: Sequence[History]) -> str:
    """Return a strip for each figure: its runs from left to right at equal distances, from zero up, its goal dashed."""
    strips = "".join(_strip(each, STRIP * number) for number, each in enumerate(histories))
    style = (
        "text{font:12px sans-serif;fill:#666}polyline{fill:none;stroke:#0f7fc4;stroke-width:2}circle{fill:#0f7fc4}"
        ".goal{stroke:#d9650b;stroke-dasharray:5 4}.zero{stroke:#999}"
    )
    height = STRIP * len(histories)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
        f"<style>{style}</style>{strips}</svg>\n"
    )


def number(value: float) -> str:
    """Return a value with at most three digits, or all that stand before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _strip(history: History, top: int) -> str:
    highest = max(*history.values, history.limit or 0) or 1
    bottom = top + TOP + HEIGHT

    def y(value: float) -> float:
        return round(bottom - HEIGHT * value / highest, 1)

    step = (WIDTH - 6 * LEFT) / (len(history.values) - 1)
    points = [(round(2 * LEFT + step * place, 1), y(value), value) for place, value in enumerate(history.values)]
    line = " ".join(f"{x},{height}" for x, height, _ in points)
    goal = ""
    if history.limit is not None:
        goal = f'<line class="goal" x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{y(history.limit)}" y2="{y(history.limit)}"/>'
    title = history.what + (f" ({history.unit})" if history.unit else "")
    title += f"; goal {history.required}, dashed" if history.limit is not None else ""
    lines = enumerate(textwrap.wrap(title, 100, max_lines=2, placeholder=" …"), 1)
    return (
        "".join(f'<text x="{LEFT}" y="{top + 14 * place}">{escape(part)}</text>' for place, part in lines)
        + f'<line class="zero" x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{bottom}" y2="{bottom}"/>{goal}'
        f'<polyline points="{line}"/>'
        + "".join(
            f'<circle cx="{x}" cy="{height}" r="3"/>'
            f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{number(value)}</text>'
            for x, height, value in points
        )
    )
