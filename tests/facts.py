"""Supporting facts of questions for tests."""

from __future__ import annotations

from judgetree.evaluation.datasets.standards_qa import SupportingFact


def fact(source: str, quote: str, question: str, answer: str, remaining_question: str = "") -> SupportingFact:
    return SupportingFact(
        source=source, quote=quote, question=question, answer=answer, remaining_question=remaining_question
    )
