"""Behaviour of the scripted model server: latency, refused features, and deliberate faults."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field, PlainSerializer, TypeAdapter, ValidationError, with_config

from ...modules.errors import SettingsError
from .answers import REQUEST_KINDS, ChatReply, RequestKind

TransportFault = Literal["429", "500", "timeout", "drop"]
"""Rate limit with Retry-After, server error, delayed answer, connection closed in the middle of the answer."""
Garbling = Literal["prose", "fence", "think", "truncated", "wrong_type", "empty"]
"""Text instead of JSON, a Markdown fence, preceding thoughts, truncation, values of the wrong type, nothing."""
Fault = Literal[TransportFault, Garbling]

TRANSPORT_FAULTS: frozenset[TransportFault] = frozenset(get_args(TransportFault))
FAULTS: tuple[Fault, ...] = (*get_args(TransportFault), *get_args(Garbling))

_ALL: frozenset[Fault] = frozenset(get_args(Garbling))
_YES_NO: frozenset[Fault] = frozenset({"prose", "think", "empty"})
_TEXT: frozenset[Fault] = frozenset({"think", "empty", "truncated"})
_GARBLINGS: dict[RequestKind, frozenset[Fault]] = {
    "judge": _ALL,
    "batch": _ALL,
    "needed": _YES_NO,
    "alone": _YES_NO,
    "sub_question": _TEXT,
    "look_up": _TEXT,
    "ask_again": _TEXT,
    "read": _TEXT,
    "closed_book": _TEXT,
    "triples": _ALL,
    "ragas": _ALL,
    "other": _TEXT,
    "embeddings": frozenset(),
    "rerank": frozenset(),
}

Rate = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0)]
ResponseFormat = Literal["json_schema", "json_object"]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """Settings that may change while the server runs.

    A request meets at most one fault, drawn from the seed, the content of the request and the number of its
    repetitions: the order of parallel requests does not matter, and a retry draws again.

    Raises:
        ValueError: The fault rates add up to more than 1.
    """

    latency_s: Seconds = 0.0
    """Delay of every answer; parallel requests wait in parallel."""
    faults: Mapping[Fault, Rate] = field(default_factory=dict)
    """Share of requests, in [0, 1], with each fault."""
    fault_kinds: Annotated[frozenset[RequestKind], PlainSerializer(sorted)] = frozenset(REQUEST_KINDS)
    """Kinds of requests that may meet faults."""
    fault_attempts: Annotated[int, Field(ge=0)] = 0
    """Number of repetitions of a request that may meet faults; 0 means all."""
    hold_s: Seconds = 30.0
    """Further delay of the ``timeout`` fault."""
    retry_after_s: Seconds = 1.0
    """Retry-After header of a 429."""
    refused_formats: Annotated[frozenset[ResponseFormat], PlainSerializer(sorted)] = frozenset()
    """Values of ``response_format`` answered with a 400."""
    logprobs: Literal["given", "omitted", "refused"] = "given"
    """Handling of requests for log probabilities; refused is a 400."""
    stops: Literal["honoured", "ignored", "refused"] = "honoured"
    """Handling of requests with stop texts; refused is a 400."""
    knows_by_heart: bool = False
    """Whether closed-book questions are answered from gold answers."""
    seed: int = 0

    def __post_init__(self) -> None:
        total = sum(self.faults.values())
        if total > 1 + 1e-9:
            raise ValueError(f"fault rates add up to {total:g}; a request meets one fault, so at most 1 is allowed")

    def draw_fault(self, *, kind: RequestKind, content: bytes, attempt: int) -> Fault | None:
        """Draw the fault of a request, or None; ``attempt`` counts requests of this content from 1.

        Garblings that do not apply to the kind (a wrong type in plain text) are never drawn.
        """
        if not self.faults or kind not in self.fault_kinds or 0 < self.fault_attempts < attempt:
            return None
        salt = f"{self.seed}\0{kind}\0{attempt}\0".encode()
        number = int.from_bytes(hashlib.blake2b(salt + content, digest_size=8).digest()) / 2**64
        for fault in FAULTS:
            if fault in TRANSPORT_FAULTS or fault in _GARBLINGS[kind]:
                number -= self.faults.get(fault, 0.0)
                if number < 0:
                    return fault
        return None


_BEHAVIOUR = TypeAdapter(Behaviour)


def changed(behaviour: Behaviour, changes: Mapping[str, object]) -> Behaviour:
    """Replace some fields of the behaviour, checking untrusted values.

    Raises:
        SettingsError: A field is unknown or its value not allowed.
    """
    fields = {name: getattr(behaviour, name) for name in Behaviour.__dataclass_fields__}
    try:
        return _BEHAVIOUR.validate_python({**fields, **changes})
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'behaviour'}: {fault['msg']} (got {fault['input']!r})"
            for fault in error.errors(include_url=False)
        )
        raise SettingsError(
            f"The scripted server has no such behaviour: {faults}. Fields are {', '.join(fields)}; "
            f"faults are {', '.join(FAULTS)}."
        ) from error


def as_json(behaviour: Behaviour) -> dict[str, object]:
    """Convert the behaviour to plain JSON data, which ``changed`` accepts."""
    data: dict[str, object] = _BEHAVIOUR.dump_python(behaviour, mode="json")
    return data


def parse_fault(text: str) -> tuple[str, str]:
    """Split ``KIND:RATE``, without checks; a missing rate means 1.

    >>> parse_fault("429:0.2"), parse_fault("drop")
    (('429', '0.2'), ('drop', '1'))
    """
    kind, _, rate = text.partition(":")
    return kind.strip(), rate.strip() or "1"


def stopped(reply: ChatReply, stops: Sequence[str]) -> ChatReply:
    """Cut a reply before the first of the stop texts, as endpoints do: in the text, whatever it means."""
    end = min((at for stop in stops if (at := reply.text.find(stop)) >= 0), default=None)
    return reply if end is None else replace(reply, text=reply.text[:end], finish_reason="stop")


def garble(reply: ChatReply, fault: Garbling) -> ChatReply:
    """Garble a reply like a careless model; its first token no longer says yes or no."""
    text = reply.text
    if fault == "truncated":
        return ChatReply(text=text[: len(text) // 2], finish_reason="length")
    garbled = {
        "prose": "Having read the passage, I find that it helps a little, but it is hard to say.",
        "fence": f"```json\n{text}\n```",
        # The thoughts contain a decoy: only the text after the closing tag counts.
        "think": f'<think>\nPerhaps {{"reason": "a guess", "score": 0, "next_query": ""}}?\n</think>\n\n{text}',
        "wrong_type": json.dumps({"reason": ["none"], "score": "partly", "next_query": 7}),
        "empty": "",
    }[fault]
    return ChatReply(text=garbled)
