"""Parts of LangChain as parts of graphs, judges and sessions."""

from __future__ import annotations

from typing import overload

from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.retrievers import BaseRetriever

from ..modules.errors import SettingsError
from ..modules.llm.call_gate import CallGate
from ..modules.llm.langchain_chat import LangChainChat
from ..modules.retriever.own import LangChainRetriever


@overload
def from_langchain(
    part: BaseChatModel | BaseLLM, *, version: str = "", gate: CallGate | None = None
) -> LangChainChat: ...
@overload
def from_langchain(part: BaseRetriever, *, version: str = "") -> LangChainRetriever: ...
def from_langchain(
    part: object, *, version: str = "", gate: CallGate | None = None
) -> LangChainChat | LangChainRetriever:
    """Return a model of LangChain as a ``ChatLLM``, or a retriever of LangChain as a ``ChunkRetriever``.

    A model that completes texts gets the messages as one prompt.

    ::

        RagContext(reader=from_langchain(llm), retriever=from_langchain(retriever))

    Args:
        part: A ``BaseChatModel``, ``BaseLLM`` or ``BaseRetriever``, with its settings: a model keeps its own
            temperature, retries and time-out.
        version: Part of the fingerprint, besides class and fields: change it with what these do not show.
        gate: The cap on simultaneous calls of a model; None for 8 of its own.

    Raises:
        SettingsError: It is neither.
    """
    if isinstance(part, BaseChatModel | BaseLLM):
        return LangChainChat(part, version=version, gate=gate)
    if isinstance(part, BaseRetriever):
        return LangChainRetriever(part, version=version)
    raise SettingsError(
        f"{part!r:.100} is no model and no retriever of LangChain. Give a BaseChatModel, BaseLLM or BaseRetriever: not "
        "its class, and without bind(), with_retry() or a chain around it."
    )
