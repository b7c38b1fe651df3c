"""What one question may have otherwise than its session: model, search, policy and limits, for that question alone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, replace
from typing import TypedDict, cast

from ...modules.addresses import Address
from ...modules.errors import SettingsError
from ...modules.llm.contract import ChatLLM, thinking_of
from ...modules.llm.langchain_chat import LangChainModel, name_of_llm
from ...modules.llm.tuned import tuned
from ...modules.retriever.rerank import RerankModel
from ...modules.retriever.retriever import Retriever
from ..search.policies.registry import create_policy
from ..search.policy import Policy
from .context import Limits, RagContext


class Overrides(TypedDict, total=False):
    """Keyword arguments of one question; what is missing or None is as in the session."""

    llm: str | ChatLLM | LangChainModel | None
    """Model that answers, and understands follow-ups: a spec such as ``openai:gpt-4o``, or a model, as for
    ``RagSession``. Judges stay."""
    thinking: bool | None
    """Whether that model thinks before it answers. Judges stay; a model of LangChain refuses it."""
    topk: int | None
    """Chunks that each query retrieves."""
    search_type: str | None
    """``dense``, ``sparse`` or ``hybrid``."""
    rerank: str | RerankModel | None
    """Model that reorders the hits: ``dashscope:MODEL``, ``URL#MODEL``, or a model."""
    rerank_input_top_n: int | None
    """Most hits that the rerank model sees."""
    score_threshold: float | None
    """Least score of a retrieved chunk."""
    limits: Limits | None
    """Limits of this question, in place of the session's."""
    policy: str | Policy | None
    """Chooses the chunks that ask their sub-questions, such as ``best_first``; for systems that judge."""
    insert_block: bool | None
    """Whether a model takes out the chunks that do not belong to the answer, before it is written."""
    insert_block_llm: str | ChatLLM | LangChainModel | None
    """Model of that filter; None takes the one that judges."""


_USUAL = Limits()
OpenLLM = Callable[[str | ChatLLM | LangChainModel], Awaitable[ChatLLM]]
"""Opens a model."""
_SWITCHES = ("thinking", "insert_block")
_SEARCH = ("topk", "search_type", "rerank", "rerank_input_top_n", "score_threshold")

_NUMBERS: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("topk", (int,), "a whole number from 1 on"),
    ("rerank_input_top_n", (int,), "a whole number from 1 on"),
    ("score_threshold", (int, float), "a number"),
)


def described(given: Overrides) -> dict[str, str]:
    """Describe the overrides by name, without secrets; empty without any.

    Raises:
        SettingsError: A name is unknown, or a value has the wrong type.
    """
    values = cast(Mapping[str, object], given)
    unknown = sorted(values.keys() - Overrides.__annotations__.keys())
    if unknown:
        allowed = ", ".join(Overrides.__annotations__)
        raise SettingsError(f"A question takes no {', '.join(map(repr, unknown))}. Allowed: {allowed}.")
    for name in _SWITCHES:
        if not isinstance(values.get(name), bool | None):
            raise SettingsError(f"{name}={values[name]!r} is not allowed. Give True, False or None.")
    for name, kinds, allowed in _NUMBERS:
        value = values.get(name)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(cast(float, value))
        ):
            raise SettingsError(f"{name}={value!r} is not allowed. Give {allowed}.")
    limits = values.get("limits")
    if limits is not None and not isinstance(limits, Limits):
        raise SettingsError(f"limits={limits!r:.80} is not allowed. Give Limits(…).")
    texts = {name: _text(value) for name, value in values.items() if value is not None}
    for name, llm in (("llm", given.get("llm")), ("insert_block_llm", given.get("insert_block_llm"))):
        if llm is not None and not isinstance(llm, str):
            texts[name] = name_of_llm(llm)
    return texts


async def overridden(services: RagContext, given: Overrides, open_llm: OpenLLM) -> RagContext:
    """Return the services with the overrides of one question.

    Raises:
        UserError: The model cannot be opened, an argument does not fit the collection, or the search is one's own.
    """
    if not described(given):
        return services
    llm = given.get("llm")
    reader = services.reader if llm is None else await open_llm(llm)
    thinking = given.get("thinking")
    reader = tuned(reader, thinking=thinking_of(services.reader) if thinking is None else thinking)
    retriever = services.retriever
    values = cast(Mapping[str, object], given)
    search = {name: value for name in _SEARCH if (value := values.get(name)) is not None}
    if search:
        retriever = await asyncio.to_thread(_searching, retriever, search)
    limits = given.get("limits") or services.limits
    policy = _choosing(services, given.get("policy"))
    return replace(services, reader=reader, retriever=retriever, limits=limits, policy=policy)


def _choosing(services: RagContext, given: str | Policy | None) -> Policy:
    if given is None:
        return services.policy
    if services.judge is None:
        raise SettingsError("policy cannot be set for one question of a system that judges nothing: leave it out.")
    return create_policy(given)


def _searching(retriever: object, search: Mapping[str, object]) -> Retriever:
    if not isinstance(retriever, Retriever):
        what = "a retriever of your own" if retriever is not None else "a system without a search"
        raise SettingsError(f"{', '.join(search)} cannot be set for one question of {what}: leave it out.")
    changes = dict(search)
    if (model := changes.pop("rerank", None)) is not None:
        known = retriever.ranker_params or {} if retriever.ranker_type == "model" else {}
        model = Address(model) if isinstance(model, str) else model
        changes |= {"ranker_type": "model", "ranker_params": {**known, "model": model}}
    changed = retriever.model_copy(update=changes)
    changed.check_args()
    return changed


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Limits):
        changed = {each.name: getattr(value, each.name) for each in fields(value)}
        named = [f"{name}={given}" for name, given in changed.items() if given != getattr(_USUAL, name)]
        return ", ".join(named) or "the defaults"
    if isinstance(value, str):
        return str(Address(value))
    return str(getattr(value, "name", None) or value)
