"""Structured replies of a model that scores: the JSON schema sent, and the checks on the reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel

from ...modules.calls.completion import Completion
from ...modules.calls.messages import JSON_REPAIR, Message, version_of
from ...modules.calls.usage import CallMeter
from ...modules.llm.contract import ChatLLM
from ...modules.llm.json_reply import JsonChat, ReplyProblem, ask_until_usable, closed_schema, parse_json_reply

Reply = TypeVar("Reply", bound=BaseModel)

_CHECKS = "whole numbers are 0 or 1; some list has an entry; no text but a reason is empty"
"""The checks of ``_problem_of``, for the version; change both together."""
_MAY_BE_EMPTY = frozenset({"reason"})
_MAX_REPAIRS = 2
"""Calls after an unusable reply."""
_MAX_TOKENS = 4096
"""Token limit of one reply."""


class StructuredLLM:
    """A chat model whose replies are pydantic models, of RAGAS or our own, constrained as far as the endpoint allows.

    After an unusable reply it asks again and states the problem.
    """

    def __init__(self, llm: ChatLLM) -> None:
        self._chat = JsonChat(llm, max_tokens=_MAX_TOKENS)

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._chat.model

    @property
    def version(self) -> str:
        """Eight hexadecimal digits that change with the limits of a reply or the checks on it."""
        return version_of(_CHECKS, JSON_REPAIR, str(_MAX_REPAIRS), str(_MAX_TOKENS))

    async def ask(self, prompt: str, reply: type[Reply], *, meter: CallMeter) -> Reply:
        """Ask for a reply to one prompt; see ``ask_messages``."""
        return await self.ask_messages([("user", prompt)], reply, meter=meter)

    async def ask_messages(self, messages: Sequence[Message], reply: type[Reply], *, meter: CallMeter) -> Reply:
        """Ask for a reply, in one to three calls.

        Raises:
            ReplyProblem: The last reply is unusable.
            ModelCallError: The endpoint failed after its last attempt.
            CacheMiss: The cache is in replay mode and does not hold the call.
        """

        def read(completion: Completion) -> Reply:
            return parse_reply(completion.text, reply, cut_off=completion.is_cut_off)

        return await ask_until_usable(
            self._chat, messages, schema_of(reply), read, meter=meter, max_repairs=_MAX_REPAIRS
        )


def schema_of(reply: type[BaseModel]) -> dict[str, object]:
    """Return the model's JSON schema for strict endpoints: closed objects, all fields required, integers 0 or 1.

    RAGAS's own schemas allow any integer, but all of them are flags.
    """
    schema = closed_schema(reply)
    definitions = schema.get("$defs")
    for part in (schema, *(definitions.values() if isinstance(definitions, dict) else ())):
        properties = part["properties"]
        for name, field in properties.items():
            if field.get("type") == "integer":
                properties[name] = {**field, "enum": [0, 1]}
    return schema


def parse_reply(text: str, reply: type[Reply], *, cut_off: bool = False) -> Reply:
    """Parse a reply and check its lists, flags and texts.

    ``cut_off`` marks a reply that reached the token limit: a repaired part could look complete.

    Raises:
        ReplyProblem: The reply is unusable. RAGAS itself would accept it: a flag of 7 counts as true, and an answer
            without statements scores 0 or 1.
    """
    if cut_off:
        raise ReplyProblem("It was cut off; write a shorter one.")
    parsed = parse_json_reply(text, reply)
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
