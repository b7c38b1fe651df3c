"""Calls that write the answer of a question in the form that its asker wants; instructions stay below the rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Unpack

from ..calls.completion import Completion
from ..calls.growing_text import Delta, TextListeners
from ..calls.messages import JSON_REPAIR, PLAIN_TEXT, CallOptions, Message
from ..calls.tokens import text_tokens
from ..calls.usage import CallMeter
from ..config.answer_form import USUAL_FORM, AnswerForm
from ..errors import ModelRequestError, SettingsError
from ..json_objects import object_spans
from ..llm.contract import ChatLLM, ChatWrapper
from .prompts import REFUSAL
from .refusals import is_refusal

_HEAD = "\n\nThe asker's wishes for the answer"
_BEGIN, _END = "<wishes>", "</wishes>"
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
        wishes = form.instructions.replace(_BEGIN, "").replace(_END, "")
        parts.append(f"{_RULES}\n{_BEGIN}\n{wishes}\n{_END}")
    if form.json_format:
        schema = f" Its JSON Schema: {json.dumps(form.json_schema, ensure_ascii=False)}" if form.json_schema else ""
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
        return is_refusal(answer)
    texts = list(_texts_in(_object_in(answer)))
    return is_refusal(answer) if not texts else any(text.strip() == REFUSAL for text in texts)


class FormedLLM(ChatWrapper):
    """A chat model whose calls write the answer of a question in a form."""

    def __init__(self, inner: ChatLLM, form: AnswerForm) -> None:
        super().__init__(inner)
        self._form = form

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        """Make one call in the form; a reply that is to be JSON and is none is asked for once more.

        Raises:
            SettingsError: Nor is the second one, or the endpoint refuses the form.
        """
        form = self._form
        own = replace(
            options,
            max_tokens=form.max_tokens or options.max_tokens,
            stop=(*options.stop, *form.stop),
            seed=form.seed,
            json_format=form.json_format,
            json_schema=form.json_schema,
        )
        asked = _with_form(messages, form)
        if not form.json_format:
            return await self._inner.complete(asked, meter=meter, options=own, **listeners)
        return await self._json(asked, meter, own, listeners)

    async def _json(
        self, asked: list[Message], meter: CallMeter, options: CallOptions, listeners: TextListeners
    ) -> Completion:
        try:
            thinking = listeners.get("on_thinking")
            completion = await self._inner.complete(asked, meter=meter, options=options, on_thinking=thinking)
            if (problem := self._problem(completion)) and not completion.is_cut_off:
                repair = ("assistant", completion.text), ("user", JSON_REPAIR.format(problem=problem))
                unheld = replace(meter, held_by="")  # the records are shared
                completion = await self._inner.complete([*asked, *repair], meter=unheld, options=options)
                problem = self._problem(completion)
        except ModelRequestError as error:
            raise SettingsError(
                f"The model that answers refuses a JSON answer of this form: leave out response_format. ({error})"
            ) from error
        if problem and not completion.is_cut_off:
            raise SettingsError(
                f"The model that answers wrote no JSON of the form that was asked for ({problem.rstrip('.')}): leave "
                "out response_format."
            )
        found = _object_in(completion.text)
        text = completion.text if found is None else json.dumps(found, ensure_ascii=False)
        if (on_text := listeners.get("on_text")) is not None:
            on_text(Delta(text))
        return replace(completion, text=text)

    def _problem(self, completion: Completion) -> str:
        """Return why a reply is not the JSON object that was asked for; ``""`` if it is, or declines."""
        found = _object_in(completion.text)
        if found is None:
            return "" if completion.refusal or is_refusal(completion.text) else "It is no JSON object."
        wanted = (self._form.json_schema or {}).get("required")
        missing = [name for name in wanted if name not in found] if isinstance(wanted, list) else []
        return f"It lacks {', '.join(map(str, missing))}." if missing else ""


def _with_form(messages: Sequence[Message], form: AnswerForm) -> list[Message]:
    texts = form_texts(form)
    if not texts:
        return list(messages)
    first, *rest = messages if messages[0][0] == "system" else [("system", ""), *messages]
    return [("system", f"{first[1]}{texts}".strip()), *rest]


def _before(text: str, ends: Iterable[str]) -> str:
    for end in ends:
        text = text.partition(end)[0]
    return text


def _object_in(text: str) -> dict[str, object] | None:
    """Return the first sound JSON object in a text, whatever stands around it."""
    for part in (text, *(text[span.start : span.end] for span in object_spans(text))):
        with suppress(ValueError, RecursionError):
            found = json.loads(part, strict=False)
            if isinstance(found, dict):
                return found
    return None


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)


def in_form(llm: ChatLLM, form: AnswerForm) -> ChatLLM:
    """Return a model that writes answers in a form; ``llm`` itself for the usual one."""
    return llm if form == USUAL_FORM else FormedLLM(llm, form)
