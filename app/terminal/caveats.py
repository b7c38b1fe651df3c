"""Lines on replies that are worse than they look, below an answer in the terminal."""

from __future__ import annotations

from ...modules.caveats.kinds import CAVEATS, Caveats
from .terminal import say


def say_caveats(caveats: Caveats) -> None:
    """Print a line on standard error on each kind of caveat: how often it happened, what it means and what to do."""
    from ...graphs.drawing.words import caveat_lines

    for kind, line in zip(caveats, caveat_lines(caveats), strict=True):
        say(f"{line} {CAVEATS[kind].remedy}", style="yellow")
