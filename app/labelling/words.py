"""Words about passages and labels that page and terminal share."""

from __future__ import annotations

from collections.abc import Mapping

from ...evaluation.labels.labelling import Reveal

SCORE_WORDS: Mapping[str, str] = {
    "2": "answers the query alone",
    "1": "holds a needed fact, another one is missing",
    "0": "does not help",
    "?": "cannot tell",
}
"""By key, in the order in which they are offered."""
_GOLD_WORDS = {
    "fact": "a supporting fact stands in it",
    "document": "from a gold document",
    "": "no supporting fact stands in it",
}


def format_reveal(reveal: Reveal) -> str:
    """Say what the judge and the data set say of a passage."""
    judge = "no judge saw it" if reveal.verdict == "pending" else f"the judge said {reveal.verdict}"
    return judge if reveal.gold is None else f"{judge}; gold: {_GOLD_WORDS[reveal.gold]}"
