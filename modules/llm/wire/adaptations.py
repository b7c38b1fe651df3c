"""How requests to an endpoint's model are changed, since it refused some of their parts by name."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .refusals import DEVELOPER, LOGPROBS, OBJECT, SCHEMA, STREAM, STREAM_KEY, SYSTEM, WHOLE, Refused

logger = logging.getLogger(__name__)

_IN_WORDS = {
    (SYSTEM, "user"): "the role system (joined to the user's message)",
    (DEVELOPER, "system"): "the role developer (sent as system)",
    (STREAM, WHOLE): "streams (replies come whole)",
    (WHOLE, STREAM): "whole replies (they are streamed)",
    (SCHEMA, OBJECT): "JSON by a schema (json_object is asked for)",
    (SCHEMA, ""): "JSON by a schema (the prompt alone asks for it)",
    (OBJECT, ""): "json_object (the prompt alone asks for JSON)",
    (LOGPROBS, ""): "log probabilities (judges ask for written verdicts)",
}


_ALIAS = re.compile(r"[-:@](?:latest|free|online|nitro|preview)\Z")
"""Ends of names that are no part of a model's own."""
_MOST_NAMES = 20
_LONGEST_NAME = 100


class Adaptations:
    """The parts of requests that a model refuses, and what it is sent in their place. Thread-safe.

    A call changes what it was refused in its own requests; once one of them is answered, all calls change it.
    """

    def __init__(self, changes: Refused | None = None) -> None:
        """Begin with ``changes``, which are known; None for none."""
        self._changes: dict[str, str] = dict(changes or {})
        self._warned: set[tuple[str, str]] = set()
        self._names: dict[str, bool] = {}
        self._lock = threading.Lock()

    def changes(self, part: str) -> bool:
        """Return whether a part is refused."""
        return part in self._changes

    def besides(self, own: Refused) -> Adaptations:
        """Return these changes with those of one call, which were not answered yet."""
        return Adaptations(_merged(self._changes, own)) if own else self

    def answered(self, where: str, own: Refused) -> None:
        """Note that the model of ``where`` has answered a request with the changes of its call, and warn of new ones.

        Other calls were not refused those parts, so that their answers say nothing of them.
        """
        if not own:
            return
        with self._lock:
            self._changes = _merged(self._changes, own)
            new = {each: None for each in own.items() if each not in self._warned}
            self._warned |= new.keys()
        if named := [_in_words(part, to) for part, to in new if part != LOGPROBS]:  # a judge warns of those
            logger.warning("%s refuses %s; its calls are sent so", where, ", ".join(named))

    def note_name(self, where: str, asked: str, answering: object) -> None:
        """Note the name under which the model of ``where`` has answered, and warn of one that is another's."""
        if not isinstance(answering, str) or answering in self._names or len(self._names) >= _MOST_NAMES:
            return
        with self._lock:
            is_new = answering not in self._names
            self._names[answering] = is_another(asked, answering)
        if is_new and self._names[answering]:
            logger.warning("%s answers as %r: another model may stand behind it", where, answering[:_LONGEST_NAME])

    @property
    def told(self) -> list[str]:
        """What is refused and what is done about it, in words, in their order; then other names that have answered."""
        refused = [_in_words(part, to) for part, to in list(self._changes.items())]
        names = [name for name, is_other in list(self._names.items()) if is_other]
        return [*refused, *(f"answers as {name[:_LONGEST_NAME]!r}" for name in names)]

    def applied(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with what it is refused replaced; streams and log probabilities are the caller's."""
        if not self._changes:
            return body
        body = dict(body)
        for part, to in list(self._changes.items()):
            if part in (SYSTEM, DEVELOPER):
                body |= _with_roles(part, body)
            elif part in (SCHEMA, OBJECT):
                if (body.get("response_format") or {}).get("type") == part:
                    body |= {"response_format": {"type": to}}
                    body = body if to else _without(body, "response_format")
            elif part == STREAM_KEY:
                body = _without(body, "stream")
            elif part in body and part not in (STREAM, LOGPROBS):
                value = body.pop(part)
                if to:
                    body[part if to == "1" else to] = 1 if to == "1" else value
        return body


def is_another(asked: str, answering: str) -> bool:
    """Return whether the name of a model that answered is no longer or shorter form of the one that was asked.

    >>> is_another("openai/gpt-4o", "gpt-4o-2024-08-06"), is_another("claude-latest", "claude-4"), is_another("a", "b")
    (False, False, True)
    """
    one, other = (_ALIAS.sub("", name.strip().rpartition("/")[2].casefold()) for name in (asked, answering))
    return one not in other and other not in one


_known: dict[tuple[str, str], Adaptations] = {}


def adaptations_at(endpoint: str, model: str) -> Adaptations:
    """Return what this process knows of a model's refusals, shared by all who ask it at this endpoint.

    Args:
        endpoint: Name of the endpoint as in caches.
        model: Name of the model there.
    """
    return _known.setdefault((endpoint, model), Adaptations())


def told_adaptations(models: Iterable[tuple[str, str]] | None = None) -> dict[str, list[str]]:
    """Return what models have refused in this process, in words, by "model at endpoint"; empty if none has.

    Args:
        models: Names of endpoint and model, as in ``adaptations_at``; None for all.
    """
    chosen = list(_known) if models is None else set(models) & _known.keys()
    found = {f"{model} at {endpoint}": _known[endpoint, model].told for endpoint, model in chosen}
    return {name: told for name, told in sorted(found.items()) if told}


def joined_adaptations(*told: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Merge the results of ``told_adaptations`` from several processes or starts of a run: each once, in their order.

    >>> joined_adaptations({"m at h": ["stop (left out)"]}, {"m at h": ["n (left out)", "stop (left out)"]})
    {'m at h': ['stop (left out)', 'n (left out)']}
    """
    names = sorted({name for each in told for name in each})
    return {name: list(dict.fromkeys(word for each in told for word in each.get(name, ()))) for name in names}


def forget_adaptations() -> None:
    """Forget what models have refused; a model that was exchanged may take it."""
    _known.clear()


def _merged(changes: Refused, newer: Refused) -> dict[str, str]:
    merged = dict(changes)
    for part, to in newer.items():
        for each in (part, to):  # the limit of tokens changes its name back
            merged.pop(each, None)
        merged[part] = to
    return merged


def _in_words(part: str, to: str) -> str:
    return _IN_WORDS.get((part, to)) or f"{part} ({f'sent as {to}' if to else 'left out'})"


def _without(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}


def _with_roles(part: str, body: Mapping[str, Any]) -> dict[str, Any]:
    if "messages" not in body:
        return {}
    if part == DEVELOPER:
        return {"messages": [{**each, "role": _less(each["role"])} for each in body["messages"]]}
    return {"messages": _joined(body["messages"])}


def _less(role: str) -> str:
    return "system" if role == "developer" else role


def _joined(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages of the roles user and assistant alone, which alternate."""
    joined: list[dict[str, Any]] = []
    for each in messages:
        role = "user" if each["role"] in ("system", "developer") else each["role"]
        if joined and joined[-1]["role"] == role:
            joined[-1] = {**joined[-1], "content": f"{joined[-1]['content']}\n\n{each['content']}"}
        else:
            joined.append({**each, "role": role})
    return joined
