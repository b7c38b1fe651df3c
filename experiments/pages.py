"""Pages whose figures are written by a command: what stands between two marks is replaced, the rest is prose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs" / "experiments"


def fill(page: Path, parts: Mapping[str, str]) -> None:
    """Write each part between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` of a page.

    Raises:
        ValueError: The page lacks a part.
    """
    text = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        lines = f"{part.rstrip()}\n" if part else ""
        text, count = re.subn(
            rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)",
            lambda found, lines=lines: f"{found[1]}{lines}{found[2]}",
            text,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"{page} has {count} places for {name!r}.")
    page.write_text(text, encoding="utf-8")


def fill_summary(page: Path, said: str) -> None:
    """Write one sentence as the summary of a page, and nothing in its other parts."""
    names = re.findall(r"<!-- begin (\w+) -->", page.read_text(encoding="utf-8"))
    fill(page, {**dict.fromkeys(names, ""), "summary": said})


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def points(mean: float, low: float | None, high: float | None) -> str:
    """Say a difference of shares with its interval, in points."""
    ends = f" ({_signed(low)} to {_signed(high)})" if low is not None and high is not None else ""
    return _signed(mean) + ends


def _signed(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f}"  # + 0.0 makes 0 of -0


def p_words(p: float) -> str:
    """Say a p value."""
    return "< .001" if p < 0.001 else f"{p:.3f}"
