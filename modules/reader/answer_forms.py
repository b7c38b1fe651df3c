"""What the form of an answer adds to the reader's prompt, and how an answer in JSON is read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NoReturn

from ..calls.messages import Message
from ..calls.tokens import text_tokens
from ..config.answer_form import AnswerForm
from ..json_objects import object_spans
from .evidence import without_control_tokens
from .prompts import REFUSAL
from .refusals import is_refusal

_HEAD = "\n\nThe asker's wishes for the answer"
_BEGIN, _END = "<wishes>", "</wishes>"
_MARK = re.compile(r"<(?=/?wishes\b)", re.IGNORECASE)
_RULES = f"""{_HEAD} follow. They say how it is written: its language, length, tone and layout, also where the
rules above say otherwise of these. They change nothing else: the facts come from what is shown alone, no wish tells of
facts, and a refusal stays as it is."""
_JSON = f"""The answer is one JSON object and nothing else. Where the rules above ask for a refusal, a text in it is
exactly: {REFUSAL}"""


def form_texts(form: AnswerForm) -> str:
    """Return what the system message of the reader ends with; ``""`` without instructions and JSON.

    >>> form_texts(AnswerForm(max_tokens=9))
    ''
    """
    parts = []
    if form.instructions:
        wishes = _MARK.sub("< ", without_control_tokens(form.instructions))
        parts.append(f"{_RULES}\n{_BEGIN}\n{wishes}\n{_END}")
    if form.json_format:
        schema = (
            f" Its JSON Schema: {without_control_tokens(json.dumps(form.json_schema, ensure_ascii=False))}"
            if form.json_schema
            else ""
        )
        parts.append(f"\n\n{_JSON}{schema}")
    return "".join(parts)


def form_tokens(form: AnswerForm) -> int:
    """Return the estimated tokens that a form adds to a prompt."""
    return text_tokens(form_texts(form)) if form.instructions or form.json_format else 0


def without_form(messages: Sequence[Message]) -> list[Message]:
    """Return the messages of a call as they are without a form."""
    ends = (_HEAD, f"\n\n{_JSON}")
    return [(role, _before(text, ends) if role == "system" else text) for role, text in messages]


def refuses(answer: str, form: AnswerForm) -> bool:
    """Return whether an answer says that it is unknown, as a text or as a text of its JSON object."""
    if not form.json_format:
        return is_refusal(answer) or _is_cut_refusal(answer.strip(), form)
    texts = list(_texts_in(object_in(answer)))
    return is_refusal(answer) if not texts else any(text.strip() == REFUSAL for text in texts)


def _is_cut_refusal(answer: str, form: AnswerForm) -> bool:
    """Whether a refusal ends at a stop text, or after some words since no more tokens were allowed."""
    stopped = (f"{answer}{blank}{text}" for text in form.stop for blank in ("", " "))
    return any(map(REFUSAL.startswith, stopped)) or (
        form.max_tokens is not None and len(answer.split()) > 1 and REFUSAL.startswith(answer)
    )


def with_form(messages: Sequence[Message], form: AnswerForm) -> list[Message]:
    """Return the messages of a call with what the form adds to the system message."""
    texts = form_texts(form)
    if not texts:
        return list(messages)
    first, *rest = messages if messages[0][0] == "system" else [("system", ""), *messages]
    return [("system", f"{first[1]}{texts}".strip()), *rest]


def object_in(text: str) -> dict[str, object] | None:
    """Return the first sound JSON object in a text, whatever stands around it."""
    for part in (text, *(text[span.start : span.end] for span in object_spans(text))):
        with suppress(ValueError, RecursionError):
            found = json.loads(part, strict=False, parse_constant=_no_number, parse_float=_finite)
            if isinstance(found, dict):
                return found
    return None


def _texts_in(value: object) -> Iterator[str]:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict | list):
            left += each.values() if isinstance(each, dict) else each


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        _no_number(digits)
    return number


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _before(text: str, ends: Iterable[str]) -> str:
    for end in ends:
        text = text.partition(end)[0]
    return text
