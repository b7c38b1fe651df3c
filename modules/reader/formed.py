"""Calls that write the answer of a question in the form that its asker wants."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from ..calls.completion import Completion
from ..calls.growing_text import Delta, TextListeners
from ..calls.messages import JSON_REPAIR, PLAIN_TEXT, CallOptions, Message
from ..calls.usage import CallMeter
from ..config.answer_form import USUAL_FORM, AnswerForm
from ..errors import ModelRequestError, SettingsError
from ..llm.contract import ChatLLM, ChatWrapper
from ..storage.texts import storable
from .answer_forms import object_in, with_form
from .refusals import is_refusal

logger = logging.getLogger(__name__)


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
        asked = with_form(messages, form)
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
            logger.warning("the form of an answer was refused (%s)", error)
            raise SettingsError(
                "The model that answers refuses a JSON answer of this form: leave out response_format."
            ) from error
        if problem and not completion.is_cut_off:
            raise SettingsError(
                f"The model that answers wrote no JSON of the form that was asked for ({problem.rstrip('.')}): leave "
                "out response_format."
            )
        found = object_in(completion.text)
        text = completion.text if found is None else storable(json.dumps(found, ensure_ascii=False))
        if (on_text := listeners.get("on_text")) is not None:
            on_text(Delta(text))
        return replace(completion, text=text)

    def _problem(self, completion: Completion) -> str:
        """Return why a reply is not the JSON object that was asked for; ``""`` if it is, or declines."""
        found = object_in(completion.text)
        if found is None:
            return "" if completion.refusal or is_refusal(completion.text) else "It is no JSON object."
        wanted = (self._form.json_schema or {}).get("required")
        missing = [name for name in wanted if name not in found] if isinstance(wanted, list) else []
        return f"It lacks {', '.join(map(str, missing))}." if missing else ""


def in_form(llm: ChatLLM, form: AnswerForm) -> ChatLLM:
    """Return a model that writes answers in a form; ``llm`` itself for the usual one."""
    return llm if form == USUAL_FORM else FormedLLM(llm, form)
