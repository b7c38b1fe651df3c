"""Labelling in a terminal, or by lines from a pipe."""

from __future__ import annotations

import time
from typing import Literal

from ...evaluation.labels.labelling import Labelling
from ...evaluation.labels.store import FoundPassage
from ...modules.errors import SettingsError, UserError
from ...modules.judge.contract import Score
from ...modules.storage.texts import printable
from ..terminal.terminal import say
from ..terminal.typed_lines import TypedLines
from .words import SCORE_WORDS, format_reveal

_PROMPT = "2 1 0 ? (then a note), b back, q quit > "
_SCORES: dict[str, Score | None] = {"2": 2, "1": 1, "0": 0, "?": None}


class TypedLabelling:
    """Shows the passages that are left, one at a time, and saves the score and note of each line."""

    def __init__(self, work: Labelling, lines: TypedLines) -> None:
        self._work = work
        self._lines = lines
        self._labelled: list[FoundPassage] = []
        """Passages labelled in this session, for ``b``."""

    def run(self) -> None:
        """Label until nothing is left, the input ends or the annotator quits.

        Raises:
            UserError: A line from a pipe is no label.
        """
        for key, words in SCORE_WORDS.items():
            say(f"{key}  {words}", style="dim")
        again: FoundPassage | None = None
        while passage := again or next(iter(self._work.due()), None):
            done = self._label(passage)
            if done == "quit":
                return
            again = (self._labelled.pop() if self._labelled else passage) if done == "back" else None

    def _label(self, passage: FoundPassage) -> Literal["saved", "back", "quit"]:
        self._show(passage)
        started = time.monotonic()
        while (line := self._lines.next_line(_PROMPT if self._lines.is_typed else "")) is not None:
            word, _, note = line.strip().partition(" ")
            if word in ("b", "q"):
                return "back" if word == "b" else "quit"
            try:
                self._save(passage, word, note, seconds=time.monotonic() - started)
            except UserError as error:
                if not self._lines.is_typed:
                    raise
                say(str(error), style="red")
                continue
            self._labelled.append(passage)
            return "saved"
        return "quit"

    def _save(self, passage: FoundPassage, word: str, note: str, *, seconds: float) -> None:
        if word not in _SCORES:
            raise SettingsError(f"{word!r:.40} is no label. Allowed: {', '.join(_SCORES)}, then a note; b, q.")
        self._work.save(passage.id, _SCORES[word], note=note, seconds=round(seconds, 1))
        say(f"Saved {word}: {format_reveal(self._work.reveal(passage.id))}.", style="dim")

    def _show(self, passage: FoundPassage) -> None:
        left = len(self._work.due())
        say(f"\n[{len(self._work.passages) - left} of {len(self._work.passages)}]", style="dim")
        if passage.query != passage.question:
            say(f"Question: {passage.question}", style="dim")
        say(f"Query: {passage.query}", style="bold")
        if passage.source:
            say(printable(passage.source), style="dim")
        say(passage.text)
