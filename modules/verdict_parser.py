"""From what a model wrote to a verdict: thinking off, fence off, JSON, repaired JSON, then the schema."""

from __future__ import annotations

import json
import re
from typing import Annotated

import json_repair
from pydantic import BaseModel, BeforeValidator, ValidationError

from .judge import Score, Verdict, sub_question_problem
from .llm import split_thinking

_FENCE = re.compile(r"^\s*```[\w-]*\s*\n?(.*?)\n?\s*```\s*$", re.DOTALL)


class VerdictProblem(ValueError):
    """What is wrong with a reply, in words that a model can act on."""


def _whole_number(value: object) -> object:
    """Let "1" and 1.0 pass for 1; leave what else came to the schema."""
    if isinstance(value, str) and value.strip() in {"0", "1", "2"}:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool):
        return None  # true is no score, though Python counts it as 1
    return value


def _text(value: object) -> object:
    return "" if value is None else value


class _Reply(BaseModel):
    reason: Annotated[str, BeforeValidator(_text)] = ""
    score: Annotated[Score, BeforeValidator(_whole_number)]
    next_query: Annotated[str, BeforeValidator(_text)] = ""


def parse_verdict(reply: str, query: str, *, expand: bool = True) -> Verdict:
    """The verdict that a reply holds.

    A 0 or a 2 loses its ``next_query``. A 1 whose question cannot be asked comes without it, and with a ``problem``
    that says why; with ``expand=False`` it needs none.

    Raises:
        VerdictProblem: The reply holds no such verdict.
    """
    found = _load_object(reply)
    try:
        parsed = _Reply.model_validate(found)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise VerdictProblem(f"It does not fit the schema ({faults}).") from error
    question = parsed.next_query.strip() if parsed.score == 1 and expand else ""
    problem = sub_question_problem(question, query) if parsed.score == 1 and expand else ""
    return Verdict(
        status="judged",
        score=parsed.score,
        reason=parsed.reason.strip(),
        next_query="" if problem else question,
        problem=problem,
    )


def _load_object(reply: str) -> dict[str, object]:
    text, thinking = split_thinking(reply)
    text = text or thinking
    if fenced := _FENCE.match(text):
        text = fenced[1]
    try:
        found = json.loads(text)
    except ValueError:
        found = _repaired(text)
    if not isinstance(found, dict):
        raise VerdictProblem("It holds no JSON object.")
    return found


def _repaired(text: str) -> object:
    start = text.find("{")
    return json_repair.loads(text[start:]) if start >= 0 else None
