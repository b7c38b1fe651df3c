"""Questions and their supporting facts for tests."""

from __future__ import annotations

from typing import Any

from judgetree.evaluation.datasets.standards_qa import Question, SupportingFact


def fact(source: str, quote: str, question: str, answer: str, remaining_question: str = "") -> SupportingFact:
    return SupportingFact(
        source=source, quote=quote, question=question, answer=answer, remaining_question=remaining_question
    )


def question(question_id: str, text: str, answer: str, *facts: SupportingFact, **more: Any) -> Question:
    """An English question with a hop for each fact, unless ``more`` says otherwise."""
    hops = ("unanswerable", "single", "2hop", "3hop")[len(facts)]
    given = {"lang": "en", "type": hops, **more}
    return Question(id=question_id, question=text, answer=answer, supporting=facts, **given)
