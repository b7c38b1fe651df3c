"""Systems whose options were chosen so that they spend as much as another one, as manifests name them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from pydantic import ValidationError

from ...modules.reading.plausible_numbers import RecordReader
from .store import Manifest

Spending = Literal["prompt tokens", "calls"]
MATCHING = "matching"
"""Folder of the pilot in the run directory."""


@dataclass(frozen=True, kw_only=True)
class Opponent:
    """A system whose budget was matched with another one's."""

    system: str
    """With the option that was found, such as ``naive(topk=7)``."""
    matches: str
    """The system whose budget it has."""
    spending: Spending
    spent: float
    """What it spends a question on average, as if no call had come out of the cache."""
    budget: float
    """What the other system spends."""
    questions: int
    """Number of questions over which both were measured."""

    def to_document(self) -> dict[str, object]:
        """Return it as plain data for ``json.dumps``."""
        return asdict(self)

    def words(self) -> str:
        """Say what was matched, and how well.

        >>> Opponent(
        ...     system="naive(topk=7)", matches="judge", spending="prompt tokens", spent=1190, budget=1210, questions=30
        ... ).words()
        'naive(topk=7) has the prompt tokens of judge: 1,190 and 1,210 a question over 30 questions of a pilot.'
        """
        digits = 0 if self.spending == "prompt tokens" else 1
        spent, budget = f"{self.spent:,.{digits}f}", f"{self.budget:,.{digits}f}"
        said = f"{spent} and {budget} a question over {self.questions} questions of a pilot."
        if abs(self.spent - self.budget) <= self.budget / 10:
            return f"{self.system} has the {self.spending} of {self.matches}: {said}"
        return f"{self.system} comes closest to the {self.spending} of {self.matches}, and is not equal: {said}"


_OPPONENTS = RecordReader(tuple[Opponent, ...])


def opponents_in(manifest: Manifest) -> Sequence[Opponent]:
    """Return the opponents that a manifest names; none if it names none, or cannot be read."""
    try:
        return _OPPONENTS.validate_json(json.dumps(manifest.get("opponents", [])))
    except ValidationError:
        return ()
