"""From what a model wrote to a verdict: thinking off, fence off, JSON, repaired JSON, then the schema."""

from __future__ import annotations

import json
import re
from typing import Annotated

import json_repair
from pydantic import BaseModel, BeforeValidator, ValidationError

from .completion import split_thinking, storable
from .judge import Score, Verdict, sub_question_problem

_FENCE = re.compile(r"```[\w-]*\s*\n(.*?)```", re.DOTALL)


class VerdictProblem(ValueError):
    """What is wrong with a reply, in words that a model can act on."""


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
        VerdictProblem: The reply holds no such verdict.
    """
    found = _load_object(reply)
    try:
        parsed = _Reply.model_validate(found)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise VerdictProblem(f"It does not fit the schema ({faults}).") from error
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


def _load_object(reply: str) -> dict[str, object]:
    text, _ = split_thinking(reply)
    try:
        found = _loaded(text)
    except (ValueError, RecursionError):  # brackets without end
        found = None
    if not isinstance(found, dict):
        raise VerdictProblem("It holds no JSON object.")
    return found


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        fenced = _FENCE.search(text)
        text = fenced[1] if fenced else text
        start = text.find("{")
        return json_repair.loads(text[start:]) if start >= 0 else None
