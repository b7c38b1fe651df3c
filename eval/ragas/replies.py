"""What RAGAS asks a model for, as JSON: the schema that is sent, and the reply checked against it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from typing import TypeVar

import json_repair
from pydantic import BaseModel, ValidationError

from ...modules.completion import Completion, split_thinking
from ...modules.errors import CacheMiss, ModelSetupError
from ...modules.llm import CallOptions, ChatLLM, JsonFormat
from ...modules.prompts import JUDGE_REPAIR, Message, version_of
from ...modules.usage import CallMeter

logger = logging.getLogger(__name__)

Reply = TypeVar("Reply", bound=BaseModel)

_CHECKS = "whole numbers are 0 or 1; some list has an entry; no text but a reason is empty"
"""What ``_problem_of`` asks for; change it with that."""
_FENCE = re.compile(r"```[\w-]*\s*\n(.*?)```", re.DOTALL)
_MAY_BE_EMPTY = frozenset({"reason"})
_WEAKER: dict[JsonFormat, JsonFormat] = {"json_schema": "json_object", "json_object": "text"}
_REFUSED_WHATEVER_THE_FORMAT = {401, 403, 404}


class ReplyProblem(ValueError):
    """What is wrong with a reply, in words that a model can act on."""


class StructuredLLM:
    """A chat model whose replies come as pydantic models of RAGAS.

    The first call finds out how the endpoint can be asked for JSON: ``json_schema``, else ``json_object``, else plain
    text; each step down costs one refused call. A reply that cannot be used is asked for again, saying what was wrong.
    """

    def __init__(self, llm: ChatLLM, *, max_repairs: int = 2, max_tokens: int = 4096) -> None:
        """``max_repairs``: further calls after an unusable reply. ``max_tokens``: most tokens of one reply."""
        self._llm = llm
        self._max_repairs = max_repairs
        self._max_tokens = max_tokens
        self._format: JsonFormat = "json_schema"
        self._probed = False
        self._probing = asyncio.Lock()

    @property
    def model(self) -> str:
        """The model's name."""
        return self._llm.model

    @property
    def version(self) -> str:
        """Eight hexadecimal digits that change whenever the limits of a reply or the checks on it do."""
        return version_of(_CHECKS, JUDGE_REPAIR, str(self._max_repairs), str(self._max_tokens))

    async def ask(self, prompt: str, reply: type[Reply], *, meter: CallMeter) -> Reply:
        """The reply to a prompt, in 1 to ``1 + max_repairs`` calls.

        Raises:
            ReplyProblem: The last reply cannot be used either.
            ModelCallError: The endpoint failed after its last attempt.
            CacheMiss: Replaying, and the call is not kept.
        """
        schema = schema_of(reply)
        messages: list[Message] = [("user", prompt)]
        for left in range(self._max_repairs, -1, -1):
            completion = await self._complete(messages, schema, meter)
            try:
                return parse_reply(completion.text, reply, cut_off=completion.finish_reason == "length")
            except ReplyProblem as problem:
                if not left:
                    raise
                repair = JUDGE_REPAIR.format(problem=problem)
                messages = [*messages, ("assistant", completion.text or "(nothing)"), ("user", repair)]
        raise AssertionError("the last round returns or raises")

    async def _complete(self, messages: list[Message], schema: Mapping[str, object], meter: CallMeter) -> Completion:
        if self._probed:
            return await self._call(messages, schema, meter, self._format)
        async with self._probing:
            while not self._probed:
                try:
                    completion = await self._call(messages, schema, meter, self._format)
                # A replay holds no refused call, so there a miss may mean that the format had been refused.
                except (ModelSetupError, CacheMiss) as error:
                    weaker = _WEAKER.get(self._format)
                    status = error.status if isinstance(error, ModelSetupError) else None
                    if weaker is None or status in _REFUSED_WHATEVER_THE_FORMAT:
                        self._format = "json_schema"  # it was not the format: the next prompt probes anew
                        raise
                    logger.info("no %s at this endpoint (%s)", self._format, error)
                    self._format = weaker
                else:
                    self._probed = True
                    return completion
        return await self._call(messages, schema, meter, self._format)

    async def _call(
        self, messages: list[Message], schema: Mapping[str, object], meter: CallMeter, form: JsonFormat
    ) -> Completion:
        options = CallOptions(max_tokens=self._max_tokens, json_format=form, json_schema=schema)
        return await self._llm.complete(messages, meter=meter, options=options)


def schema_of(reply: type[BaseModel]) -> dict[str, object]:
    """The model's JSON schema as strict endpoints want it: closed objects, all required, whole numbers 0 or 1.

    All whole numbers that RAGAS asks for are flags, though its own schemas allow any.
    """
    schema: dict[str, object] = reply.model_json_schema()
    definitions = schema.get("$defs")
    for part in (schema, *(definitions.values() if isinstance(definitions, dict) else ())):
        properties = part["properties"]
        part |= {"additionalProperties": False, "required": list(properties)}
        for name, field in properties.items():
            if field.get("type") == "integer":
                properties[name] = {**field, "enum": [0, 1]}
    return schema


def parse_reply(text: str, reply: type[Reply], *, cut_off: bool = False) -> Reply:
    """The reply that a text holds: thinking off, fence off, JSON, repaired JSON, then the model and its flags.

    ``cut_off`` says that the endpoint cut the text short: repaired, it would be a part that looks whole.

    Raises:
        ReplyProblem: It holds no usable one. RAGAS itself would score on: a flag of 7 counts as true, and an answer
            without a single statement as fully correct or as 0.
    """
    if cut_off:
        raise ReplyProblem("It was cut off; write a shorter one.")
    found = _load_object(text)
    try:
        parsed = reply.model_validate(found)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise ReplyProblem(f"It does not fit the schema ({faults}).") from error
    if problem := _problem_of(parsed.model_dump()):
        raise ReplyProblem(problem)
    return parsed


def _problem_of(fields: Mapping[str, object]) -> str:
    lists = [value for value in fields.values() if isinstance(value, list)]
    if lists and not any(lists):
        return f"It holds nothing in {', '.join(fields)}; give at least one entry."
    for name, value in fields.items():
        if isinstance(value, int) and value not in (0, 1):
            return f"{name} is {value}; allowed are 0 and 1."
        if isinstance(value, str) and not value.strip() and name not in _MAY_BE_EMPTY:
            return f"{name} is empty."
        entries = value if isinstance(value, list) else ()
        problems = (_problem_of(entry if isinstance(entry, dict) else {name: entry}) for entry in entries)
        if problem := next(filter(None, problems), ""):
            return problem
    return ""


def _load_object(reply: str) -> Mapping[str, object]:
    text, _ = split_thinking(reply)
    try:
        found = _loaded(text)
    except (ValueError, RecursionError):  # brackets without end
        found = None
    if not isinstance(found, dict):
        raise ReplyProblem("It holds no JSON object.")
    return found


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        fenced = _FENCE.search(text)
        text = fenced[1] if fenced else text
        start = text.find("{")
        return json_repair.loads(text[start:]) if start >= 0 else None
