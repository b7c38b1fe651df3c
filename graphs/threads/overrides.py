"""What one question has otherwise than its session: model, search, policy and limits, for that question alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

from ...modules.config.retrieval import Retrieval
from ...modules.errors import SettingsError
from ...modules.llm.contract import ChatLLM, thinking_of
from ...modules.llm.langchain_chat import LangChainModel
from ...modules.llm.tuned import check_takes, with_sampling
from ...modules.retriever.retriever import Retriever
from ..config.given_keys import GivenKeys
from ..config.limits import Limits
from ..search.policies.registry import create_policy
from ..search.policy import Policy
from .context import RagContext

GivenLLM = str | ChatLLM | LangChainModel
"""A model: its spec, or itself."""
OpenLLM = Callable[[GivenLLM], Awaitable[ChatLLM]]
"""Opens a model."""
_OF_SEARCH = tuple(name for name in Retrieval.model_fields if name in Retriever.model_fields)
"""Keys that are arguments of a ``Retriever`` under the same name."""


async def overridden(services: RagContext, given: GivenKeys, open_llm: OpenLLM) -> RagContext:
    """Return the services with the keys of one question.

    Raises:
        UserError: The model cannot be opened, an argument does not fit the collection, or the search is one's own.
    """
    if not (names := given.names()):
        return services
    reader = services.reader
    if "llm" in names:
        reader = await open_llm(cast(GivenLLM, given["llm"]))
    config, thinking = given.config, given.config.thinking
    thinking = thinking_of(services.reader) if thinking is None else thinking
    reader = with_sampling(reader, temperature=config.temperature, thinking=thinking)
    form = config.answer_form if "answer_form" in names else services.answer_form
    check_takes(reader, form.options)
    retriever = services.retriever
    if changes := search_arguments(given):
        retriever = await asyncio.to_thread(searching, retriever, changes, names)
    limits = {name: value for name, value in given.config.given.items() if name in Limits.model_fields}
    return replace(
        services,
        reader=reader,
        answer_form=form,
        retriever=retriever,
        limits=services.limits.changed(**limits) if limits else services.limits,
        policy=_choosing(services, given["policy"]) if "policy" in names else services.policy,
        config={**services.config, **given.saved()},
    )


def search_arguments(given: GivenKeys) -> dict[str, Any]:
    """Return the arguments of a ``Retriever`` that are given; a ``rerank`` model is its ranker."""
    arguments = {name: value for name, value in given.config.given.items() if name in _OF_SEARCH}
    if given["rerank"] is not None:
        own = given.config.ranker_params if given.config.ranker_type == "model" else None
        arguments |= {"ranker_type": "model", "ranker_params": {**(own or {}), "model": given["rerank"]}}
    return arguments


def _choosing(services: RagContext, given: object) -> Policy:
    if services.judge is None:
        raise SettingsError("policy cannot be set for one question of a system that judges nothing: leave it out.")
    return create_policy(given)


def searching(
    retriever: object, changes: dict[str, Any], names: tuple[str, ...], *, of: str = "one question"
) -> Retriever:
    """Return a retriever with other arguments, those of one question or system.

    Raises:
        UserError: An argument does not fit the collection, or the search is one's own.
    """
    if not isinstance(retriever, Retriever):
        what = "a retriever of your own" if retriever is not None else "a system without a search"
        given = ", ".join(name for name in names if name in (*_OF_SEARCH, "rerank"))
        raise SettingsError(f"{given} cannot be set for {of} of {what}: leave it out.")
    if changes.get("ranker_type") == "model" == retriever.ranker_type:
        changes["ranker_params"] = {**(retriever.ranker_params or {}), **changes["ranker_params"]}
    changed = retriever.model_copy(update=changes)
    changed.check_args()
    return changed
