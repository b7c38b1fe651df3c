"""Replies in JSON of a schema: requested as constrained as an endpoint allows, and parsed tolerantly."""

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
from ..calls.messages import JSON_REPAIR, CallOptions, JsonFormat, Message
from ..calls.thinking import split_thinking, unfenced
from ..calls.usage import CallMeter
from ..errors import BudgetSpent, CacheMiss, ModelCallError, ModelRequestError, ModelSetupError, faults_of
from ..formats import storable
from .cache import replies_noted
from .contract import ChatLLM

MAX_STEPS = 150_000
"""Characters that the parser may look at, repeated looks included: at most 0.3 s."""


class TooMuchWork(ValueError):
    """A broken text would take too long to repair."""


def repaired_json(text: str, *, max_steps: int = MAX_STEPS) -> object:
    """Parse a text that is almost JSON, as ``json_repair.loads`` does.

    Raises:
        TooMuchWork: ``max_steps`` characters were looked at without reaching the end.
        RecursionError: The text is nested too deeply, which the caller should check.
        ValueError: The text holds a number that is too long.
    """
    return _BoundedParser(text, max_steps).parse()


class _Steps:
    """The steps left, shared by all texts that the parser makes of its input."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise TooMuchWork("it is broken in a way that takes too long to repair")


class _CountedText(str):
    """A text that counts its lookups as steps."""

    __slots__ = ("steps",)
    steps: _Steps

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = str.__getitem__(self, key)
        self.steps.take(len(found) // 16 + 1)
        return found


class _BoundedParser(JSONParser):
    """The library's parser on a counted text, which it reads and replaces as ``json_str``."""

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
"""A bracket, or a string with all brackets in it; an open string runs to the end, so that no search starts over."""
_DEEPEST = 20
"""Most nesting of JSON that is repaired."""
_LONGEST = 32_000
"""Most bytes of JSON that is repaired."""


class ReplyProblem(ValueError):
    """A reply cannot be used; the message tells the model why."""


class JsonChat:
    """A chat model that replies in JSON, in the most constrained format that its endpoint accepts.

    The first call finds the format: ``json_schema``, else ``json_object``, else plain text; each step down costs one
    refused call, and simultaneous calls wait.
    """

    def __init__(self, llm: ChatLLM, *, max_tokens: int) -> None:
        """Limit each reply to ``max_tokens`` tokens."""
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
        """Return one reply as the model wrote it, for ``parse_json_reply``.

        Raises:
            ModelCallError: The endpoint failed after its last attempt.
            ModelSetupError: The endpoint can serve no request.
            ModelRequestError: The endpoint refused the call in every format.
            CacheMiss: The run is a replay, and the call is not cached in any format.
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
    """Call the model until ``read`` accepts its reply, at most ``1 + max_repairs`` times, and return what it reads.

    Replies of which none was accepted are asked for anew by later runs, also where calls are cached.

    Raises:
        ReplyProblem: ``read`` refused the last reply too.
        ModelCallError, CacheMiss, BudgetSpent: A call could not be made, as in ``JsonChat.complete``.
    """
    asked = list(messages)
    with replies_noted() as replies:
        for left in range(max_repairs, -1, -1):
            completion = await chat.complete(asked, schema, meter=meter)
            try:
                return read(completion)
            except ReplyProblem as problem:
                if not left:
                    await replies.reject()
                    raise
                asked = asked_again(asked, completion, str(problem))
    raise AssertionError("the last round returns or raises")


async def ask_for_best(
    chat: JsonChat,
    messages: Sequence[Message],
    schema: Mapping[str, object],
    read: Callable[[Completion, T | None], tuple[T, str]],
    *,
    meter: CallMeter,
    max_repairs: int,
) -> tuple[T | None, str]:
    """Call the model until ``read`` finds no problem, at most ``1 + max_repairs`` times; return the result and problem.

    ``read`` gets a reply and the result of the earlier ones. The result is None if no reply could be read; it stays
    that of the earlier ones if a further call fails or the budget has none. Replies of which none could be read are
    asked for anew by later runs, also where calls are cached.

    Raises:
        ModelSetupError, CacheMiss, BudgetSpent: As in ``JsonChat.complete``; the last at the first call alone.
    """
    with replies_noted() as replies:
        best, problem = await _best_of(chat, messages, schema, read, meter=meter, max_repairs=max_repairs)
    if best is None:
        await replies.reject()
    return best, problem


async def _best_of(
    chat: JsonChat,
    messages: Sequence[Message],
    schema: Mapping[str, object],
    read: Callable[[Completion, T | None], tuple[T, str]],
    *,
    meter: CallMeter,
    max_repairs: int,
) -> tuple[T | None, str]:
    best: T | None = None
    problem = ""
    for _ in range(1 + max_repairs):
        try:
            completion = await chat.complete(messages, schema, meter=meter)
            best, problem = read(completion, best)
        except ReplyProblem as error:
            problem = str(error)
        except ModelSetupError:
            raise
        except ModelCallError as error:
            return best, str(error)
        except BudgetSpent:
            if not problem:
                raise
            break
        if not problem:
            break
        messages = asked_again(messages, completion, problem)
    return best, problem


def closed_schema(reply: type[BaseModel]) -> dict[str, object]:
    """Return the JSON schema as strict endpoints require it: closed objects with every key required."""
    schema: dict[str, object] = reply.model_json_schema()
    definitions = schema.get("$defs")
    for part in (schema, *(definitions.values() if isinstance(definitions, dict) else ())):
        part |= {"additionalProperties": False, "required": list(part["properties"])}
    return schema


def asked_again(messages: Sequence[Message], unusable: Completion, problem: str) -> list[Message]:
    """Return the messages for a retry: the earlier ones, the unusable reply, and its problem."""
    repair = JSON_REPAIR.format(problem=problem)
    return [*messages, ("assistant", unusable.text or "(nothing)"), ("user", repair)]


def parse_json_reply(text: str, schema: type[Reply]) -> Reply:
    """Validate the JSON object in a reply, whatever thinking, fences or small faults are around it.

    A text that was cut off is repaired too; its last value may be incomplete.

    Raises:
        ReplyProblem: The reply holds no JSON object, or none that fits the schema.
    """
    try:
        return schema.model_validate(_load_object(text))
    except ValidationError as error:
        raise ReplyProblem(f"It does not fit the schema ({'; '.join(faults_of(error))}).") from error


def _load_object(reply: str) -> dict[str, object]:
    text, _ = split_thinking(reply, is_json=True)
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
        return json.loads(unfenced(text))
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
    """Remove what stores refuse from the value's strings: JSON escapes may write NUL and lone surrogates."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if isinstance(value, dict):
        return {key: _cleaned(each) for key, each in value.items()}
    return value


def _fenced(text: str) -> str:
    """Return the text inside the first closed fence, ``""`` if there is none, in linear time.

    A fence closes at the beginning of a line, where no string of JSON has one; only if none does, within a line.
    """
    opening = text.find(_FENCE)
    start = text.find("\n", opening) + 1 if opening >= 0 else 0
    closings = (text.find(f"\n{_FENCE}", start - 1), text.find(_FENCE, start)) if start else ()
    end = next((each for each in closings if each >= 0), -1)
    return text[start:end] if end >= 0 else ""


def _first_object(text: str) -> str:
    """Return the text from its first brace to the closing one, or to the end; ``""`` without one. Linear."""
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
