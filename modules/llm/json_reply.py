"""A reply as JSON of a schema: asking for it as constrained as an endpoint allows, and reading it tolerantly."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsIndex, TypeVar

from json_repair.json_parser import JSONParser
from json_repair.utils.constants import JSONReturnType
from pydantic import BaseModel, ValidationError

from ..calls.completion import Completion
from ..calls.messages import JSON_REPAIR, Message
from ..calls.thinking import split_thinking
from ..calls.usage import CallMeter
from ..errors import CacheMiss, ModelRequestError, faults_of
from ..formats import storable
from .endpoint import CallOptions, ChatLLM, JsonFormat

MAX_STEPS = 150_000
"""Characters that the parser may look at, again and again included: at most 0.3 s."""


class TooMuchWork(ValueError):
    """The text is broken in a way that would take too long to repair."""


def repaired_json(text: str, *, max_steps: int = MAX_STEPS) -> object:
    """What a text that is almost JSON means, as ``json_repair.loads`` reads it.

    Raises:
        TooMuchWork: It was not read after looking at ``max_steps`` characters.
        RecursionError: It is nested too deeply; check that before.
        ValueError: It holds a number that is too long.
    """
    return _BoundedParser(text, max_steps).parse()


class _Steps:
    """How many are left; shared by all texts that the parser makes of the one it was given."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise TooMuchWork("it is broken in a way that takes too long to repair")


class _CountedText(str):
    """A text that counts how often it is looked into."""

    __slots__ = ("steps",)
    steps: _Steps

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = str.__getitem__(self, key)
        self.steps.take(len(found) // 16 + 1)
        return found


class _BoundedParser(JSONParser):
    """The library's parser on a text that counts; the parser reads and replaces it as ``json_str``."""

    def __init__(self, text: str, max_steps: int) -> None:
        self._steps = _Steps(max_steps)
        self._arrays = 0
        super().__init__(text, None, False)

    def parse_array(
        self, schema: dict[str, Any] | bool | None = None, path: str = "$", closing_delimiter: str = "]"
    ) -> list[JSONReturnType]:
        self._arrays += 1
        self._steps.take(self._arrays // 8)  # the parser looks through what it has merged into one array so far
        return super().parse_array(schema, path, closing_delimiter)

    @property
    def json_str(self) -> str:
        return self._text

    @json_str.setter
    def json_str(self, text: str) -> None:
        self._text = _CountedText(text)
        self._text.steps = self._steps


logger = logging.getLogger(__name__)

Reply = TypeVar("Reply", bound=BaseModel)
T = TypeVar("T")

_WEAKER: dict[JsonFormat, JsonFormat] = {"json_schema": "json_object", "json_object": "text"}
_FENCE = "```"
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[][{}]', re.DOTALL)
"""A bracket, or a string with all brackets in it; to the end where it has none, so that no search starts over."""
_DEEPEST = 20
_LONGEST = 32_000
"""Nesting and bytes of JSON that is repaired; JSON without a fault may be longer."""


class ReplyProblem(ValueError):
    """What is wrong with a reply, in words that a model can act on."""


class JsonChat:
    """A chat model that is asked for JSON, in the most constrained format that its endpoint takes.

    The first call finds that out: ``json_schema``, else ``json_object``, else plain text; each step down costs one
    refused call. Calls that are made meanwhile wait for it.
    """

    def __init__(self, llm: ChatLLM, *, max_tokens: int) -> None:
        """``max_tokens``: most tokens of one reply."""
        self._llm = llm
        self._max_tokens = max_tokens
        self._format: JsonFormat = "json_schema"
        self._probed = False
        self._probing = asyncio.Lock()

    @property
    def model(self) -> str:
        """The model's name."""
        return self._llm.model

    async def complete(
        self, messages: Sequence[Message], schema: Mapping[str, object], *, meter: CallMeter
    ) -> Completion:
        """Return one reply, as the model wrote it: ``parse_json_reply`` reads it.

        Raises:
            ModelCallError: The endpoint failed after its last attempt.
            ModelSetupError: It can serve no request.
            ModelRequestError: It refused the call in every format.
            CacheMiss: Replaying, and the call is not kept in any format.
            BudgetSpent: The tree may make no more calls.
        """
        if not self._probed:
            async with self._probing:
                if not self._probed:
                    return await self._probe(messages, schema, meter)
        return await self._call(messages, schema, meter)

    async def _probe(self, messages: Sequence[Message], schema: Mapping[str, object], meter: CallMeter) -> Completion:
        while True:
            try:
                completion = await self._call(messages, schema, meter)
            # A replay holds no refused call, so there a miss may mean that the format had been refused.
            except (ModelRequestError, CacheMiss) as error:
                weaker = _WEAKER.get(self._format)
                if weaker is None:
                    self._format = "json_schema"  # it was not the format: the next call probes anew
                    raise
                logger.info("no %s at this endpoint (%s)", self._format, error)
                self._format = weaker
            else:
                self._probed = True
                return completion

    async def _call(self, messages: Sequence[Message], schema: Mapping[str, object], meter: CallMeter) -> Completion:
        options = CallOptions(max_tokens=self._max_tokens, json_format=self._format, json_schema=schema)
        return await self._llm.complete(messages, meter=meter, options=options)


async def ask_until_usable(
    chat: JsonChat,
    messages: Sequence[Message],
    schema: Mapping[str, object],
    read: Callable[[Completion], T],
    *,
    meter: CallMeter,
    max_repairs: int,
) -> T:
    """What ``read`` makes of the reply, in 1 to ``1 + max_repairs`` calls: an unusable one is asked for again.

    Raises:
        ReplyProblem: ``read`` raised it at the last reply too.
        ModelCallError, CacheMiss, BudgetSpent: See ``JsonChat.complete``.
    """
    asked = list(messages)
    for left in range(max_repairs, -1, -1):
        completion = await chat.complete(asked, schema, meter=meter)
        try:
            return read(completion)
        except ReplyProblem as problem:
            if not left:
                raise
            asked = asked_again(asked, completion, str(problem))
    raise AssertionError("the last round returns or raises")


def closed_schema(reply: type[BaseModel]) -> dict[str, object]:
    """Return the model's JSON schema as strict endpoints want it: closed objects of which every key is required."""
    schema: dict[str, object] = reply.model_json_schema()
    definitions = schema.get("$defs")
    for part in (schema, *(definitions.values() if isinstance(definitions, dict) else ())):
        part |= {"additionalProperties": False, "required": list(part["properties"])}
    return schema


def asked_again(messages: Sequence[Message], unusable: Completion, problem: str) -> list[Message]:
    """Return the messages that led to an unusable reply, the reply, and what is wrong with it."""
    repair = JSON_REPAIR.format(problem=problem)
    return [*messages, ("assistant", unusable.text or "(nothing)"), ("user", repair)]


def parse_json_reply(text: str, schema: type[Reply]) -> Reply:
    """What a text holds: thinking off, fence off, JSON, repaired JSON, then the schema.

    A text that was cut off is repaired too, and its last value may be half of one.

    Raises:
        ReplyProblem: It holds no JSON object, or none that fits the schema.
    """
    found = _load_object(text)
    try:
        return schema.model_validate(found)
    except ValidationError as error:
        raise ReplyProblem(f"It does not fit the schema ({'; '.join(faults_of(error))}).") from error


def _load_object(reply: str) -> dict[str, object]:
    text, _ = split_thinking(reply)
    try:
        found = _cleaned(_loaded(text))
    except ReplyProblem:
        raise
    except (ValueError, RecursionError):  # brackets without end
        found = None
    if not isinstance(found, dict):
        raise ReplyProblem("It holds no JSON object.")
    return found


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        candidate = _first_object(_fenced(text) or text)
    try:
        return json.loads(candidate)
    except ValueError:
        if len(candidate.encode(errors="replace")) > _LONGEST:
            raise ReplyProblem(
                f"It holds no JSON object: what begins as one is broken and over {_LONGEST} bytes."
            ) from None
        return repaired_json(candidate) if candidate else None


def _cleaned(value: object) -> object:
    """The value with what stores refuse taken out of its strings: JSON may write NUL and half a pair as escapes."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if isinstance(value, dict):
        return {key: _cleaned(each) for key, each in value.items()}
    return value


def _fenced(text: str) -> str:
    """What stands between the first fence that has an end and that end; ``""`` if there is none. Linear."""
    opening = text.find(_FENCE)
    start = text.find("\n", opening) + 1 if opening >= 0 else 0
    end = text.find(_FENCE, start) if start else -1
    return text[start:end] if end >= 0 else ""


def _first_object(text: str) -> str:
    """Return the text from its first brace to the one that closes it, or to the end; ``""`` without one. Linear.

    Raises:
        ReplyProblem: It is nested more deeply than may be repaired.
    """
    start = text.find("{")
    if start < 0:
        return ""
    depth, end = 0, len(text)
    for token in _BRACKET.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth > _DEEPEST:
            raise ReplyProblem(f"It holds no JSON object that is nested at most {_DEEPEST} deep.")
        if not depth:
            end = token.end()
            break
    return text[start:end]
