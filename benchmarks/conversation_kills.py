"""A conversation whose turns are killed at random moments and asked again: lost turns and repeated calls."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.graphs.conversation.killed_talk import kill_turns

from .measurement import Row

KILLS = 20


def measure() -> list[Row]:
    """Measure kills of consecutive turns of one conversation on SQLite, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        talk = kill_turns(Path(folder), kills=KILLS)
    turns, remembered = len(talk.history), len(talk.remembered)
    return [
        Row(
            f"{KILLS} turns killed (-9) and asked again: copies of each, in state and memory",
            "one, as it was asked" if talk.is_whole else "not one, as it was asked",
            "one",
            holds=talk.kills == KILLS and talk.is_whole,
            note=f"{talk.kills} kills, {turns} turns of {len(talk.asked)}, {remembered} remembered",
        ),
        Row(
            f"{KILLS} turns killed (-9) and asked again: model calls that were made before",
            f"{talk.calls_made_twice} of {talk.calls}",
            f"≤ {KILLS} (one in flight at each kill)",
            holds=talk.calls_made_twice <= talk.kills,
        ),
    ]
