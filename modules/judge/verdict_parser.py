"""From what a model wrote to a verdict."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from ..calls.completion import storable
from ..llm.json_reply import parse_json_reply
from .contract import Score, Verdict, sub_question_problem


def _whole_number(value: object) -> object:
    """Let "1" pass for 1; leave what else came to the schema, which takes 1.0 too."""
    if isinstance(value, str) and value.strip() in {"0", "1", "2"}:
        return int(value)
    if isinstance(value, bool):
        return None  # true is no score, though Python counts it as 1
    return value


def _text(value: object) -> object:
    return storable(value) if isinstance(value, str) else "" if value is None else value


class _Reply(BaseModel):
    reason: Annotated[str, BeforeValidator(_text)] = ""
    score: Annotated[Score, BeforeValidator(_whole_number)]
    next_query: Annotated[str, BeforeValidator(_text)] = ""


def parse_verdict(reply: str, query: str, *, expand: bool = True, cut_off: bool = False) -> Verdict:
    """The verdict that a reply holds.

    A 0 or a 2 loses its ``next_query``. A 1 whose question cannot be asked comes without it, and with a ``problem``
    that says why; with ``expand=False`` it needs none. ``cut_off`` says that the endpoint cut the reply short: its
    question, repaired with the rest, may be half of one.

    Raises:
        ReplyProblem: The reply holds no such verdict.
    """
    parsed = parse_json_reply(reply, _Reply)
    question = problem = ""
    if parsed.score == 1 and expand:
        question = parsed.next_query.strip()
        problem = "It was cut off; write a shorter one." if cut_off else sub_question_problem(question, query)
    return Verdict(
        status="judged",
        score=parsed.score,
        reason=parsed.reason.strip(),
        next_query="" if problem else question,
        problem=problem,
    )
