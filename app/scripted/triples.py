"""Triples as the scripted model draws them from a passage: one for each gold fact that the passage quotes."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...evaluation.datasets.standards_qa import SupportingFact


def triples_reply(facts: Iterable[SupportingFact], passage: str) -> str:
    """Return the reply to the triples prompt.

    The subject is the passage's heading, the object the answer of the fact, and the relation what its quote has between
    them.
    """
    lines = [line.strip() for line in passage.splitlines() if line.strip()]
    heading = lines[0].lstrip("# ").strip() if lines else ""
    text = " ".join(passage.split())
    quoted = (each for each in facts if " ".join(each.quote.split()) in text)
    return json.dumps({"triples": list(dict.fromkeys(_triple(heading, each) for each in quoted))}, ensure_ascii=False)


def _triple(heading: str, fact: SupportingFact) -> tuple[str, str, str]:
    before = fact.quote.partition(fact.answer)[0].strip()
    if before.startswith(heading):
        return heading, before.removeprefix(heading).strip() or "has", fact.answer
    if fact.quote in heading or not before:
        return before or heading, "is", fact.answer
    return heading, before, fact.answer
