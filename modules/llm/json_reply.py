"""Replies in JSON of a schema: requested as constrained as an endpoint allows, and parsed tolerantly."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import SupportsIndex, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError

from ..calls.completion import Completion
from ..calls.messages import JSON_REPAIR, CallOptions, JsonFormat, Message
from ..calls.thinking import split_thinking
from ..calls.usage import CallMeter
from ..errors import BudgetSpent, CacheMiss, ModelCallError, ModelRequestError, ModelSetupError, faults_of
from ..json_objects import object_spans
from ..storage.texts import storable
from .cache import track_replies
from .contract import ChatLLM
from .wire.error_words import is_about_one_prompt

MAX_STEPS = 150_000
"""Characters that the parser may look at, repeated looks included: at most 0.3 s."""


class TooMuchWork(ValueError):
    """A broken text would take too long to repair."""


def repaired_json(text: str, *, max_steps: int = MAX_STEPS) -> object:
    """Parse a text that is almost JSON, as ``json_repair.loads`` does.

    Raises:
        TooMuchWork: ``max_steps`` characters were looked at without reaching the end.
        ValueError: The text holds a number that is too long, or is nested too deeply.
    """
    steps = _Steps(max_steps)
    arrays = text.count("[") + text.count("(")
    steps.take(arrays * arrays // 16)  # the parser looks through what it has merged into one array so far
    found: object = json_repair.repair_json(_CountedText.of(text, steps), return_objects=True, skip_json_loads=True)
    return found


class _Steps:
    """The steps left, shared by all texts that the parser makes of its input."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise TooMuchWork("it is broken in a way that takes too long to repair")


class _CountedText(str):
    """A text that counts lookups as steps, in the texts too that a parser composes of its beginning and its end."""

    __slots__ = ("steps",)
    steps: _Steps

    @classmethod
    def of(cls, text: str, steps: _Steps) -> _CountedText:
        counted = cls(text)
        counted.steps = steps
        return counted

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = str.__getitem__(self, key)
        self.steps.take(len(found) // 16 + 1)
        is_composed = isinstance(key, slice) and (key.start is None or key.stop is None)
        return self.of(found, self.steps) if is_composed else found  # a value that is found stays a plain text

    def __add__(self, other: str) -> _CountedText:
        return self.of(str.__add__(self, other), self.steps)


logger = logging.getLogger(__name__)

Reply = TypeVar("Reply", bound=BaseModel)
T = TypeVar("T")

_WEAKER: dict[JsonFormat, JsonFormat] = {"json_schema": "json_object", "json_object": "text"}
_DECODER = json.JSONDecoder(strict=False)
_QUOTED_KEY = re.compile(r"\{\s*[\"'}]")
_MOST_BROKEN = 4
"""Most objects of a reply that are repaired."""
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
                if isinstance(error, ModelRequestError) and is_about_one_prompt(error.__cause__ or error):
                    raise
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
    with track_replies() as replies:
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
    with track_replies() as replies:
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
    """Validate the first JSON object in a reply that fits, whatever thinking, fences or small faults are around it.

    A sound object wins over one that must be repaired. A text that was cut off is repaired too; its last value may be
    incomplete.

    Raises:
        ReplyProblem: The reply holds no JSON object, or none that fits the schema.
    """
    answer, _ = split_thinking(text, is_json=True)
    misfit: ValidationError | None = None
    for found in _objects_in(answer):
        try:
            return schema.model_validate(_cleaned(found))
        except ValidationError as error:
            misfit = misfit or error
    if misfit is None:
        raise ReplyProblem("It holds no JSON object.")
    raise ReplyProblem(f"It does not fit the schema ({'; '.join(faults_of(misfit))}).") from misfit


def _objects_in(text: str) -> Iterator[dict[str, object]]:
    """Yield the objects in a text: those that are sound, then the others repaired, with quoted keys first.

    Raises:
        ReplyProblem: One that has to be repaired is too long or nested too deep.
    """
    whole = _sound(text)
    if isinstance(whole, dict):
        yield whole
    if isinstance(whole, dict | str | int | float):
        return
    broken = []
    for span in object_spans(text):
        candidate = text[span.start : span.end]
        found = _sound(candidate)
        if isinstance(found, dict):
            yield found
        else:
            broken.append((candidate, span.depth))
    broken.sort(key=lambda each: _QUOTED_KEY.match(each[0]) is None)  # others may be braces in prose
    for candidate, depth in broken[:_MOST_BROKEN]:
        if depth > _DEEPEST:
            raise ReplyProblem(f"It holds no JSON object that is nested at most {_DEEPEST} deep.")
        if len(candidate.encode(errors="replace")) > _LONGEST:
            raise ReplyProblem(f"It holds no JSON object: what begins as one is broken and over {_LONGEST} bytes.")
        with suppress(ValueError, RecursionError):
            found = repaired_json(candidate)
            if isinstance(found, dict):
                yield found


def _sound(text: str) -> object:
    """Return the value of a text in JSON, line breaks in its strings allowed; None if it is not."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _cleaned(value: object) -> object:
    """Remove what stores refuse from the value's strings: JSON escapes may write NUL and lone surrogates."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if isinstance(value, dict):
        return {key: _cleaned(each) for key, each in value.items()}
    return value
