"""Recursive RAG with a judge.

>>> import judgetree
>>> sorted(judgetree.__all__)[:3]
['CallGate', 'Conversation', 'ConversationOptions']

Names are imported when they are first used, so that ``import judgetree`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graphs.conversation.conversation import Conversation as Conversation
    from .graphs.conversation.conversations import Conversations as Conversations
    from .graphs.conversation.turn.context import ConversationOptions as ConversationOptions
    from .graphs.rag.graph import RagGraph as RagGraph
    from .graphs.rag.result import RagResult as RagResult
    from .graphs.rag.search_tree import SearchTree as SearchTree
    from .graphs.session import RagSession as RagSession
    from .graphs.session import aask as aask
    from .graphs.session import ask as ask
    from .graphs.systems.closed_book import build_closed_book as build_closed_book
    from .graphs.systems.ircot import build_ircot as build_ircot
    from .graphs.systems.iter_retgen import build_iter_retgen as build_iter_retgen
    from .graphs.systems.judge_rag import build_judge_rag as build_judge_rag
    from .graphs.systems.naive_rag import build_naive_rag as build_naive_rag
    from .graphs.systems.react import build_react as build_react
    from .graphs.systems.self_ask import build_self_ask as build_self_ask
    from .graphs.threads.context import Limits as Limits
    from .graphs.threads.context import RagContext as RagContext
    from .modules.embedding.embedder import create_embeddings as create_embeddings
    from .modules.errors import JudgetreeError as JudgetreeError
    from .modules.errors import ModelCallError as ModelCallError
    from .modules.errors import ThreadMismatch as ThreadMismatch
    from .modules.errors import UnknownThread as UnknownThread
    from .modules.errors import UserError as UserError
    from .modules.index.factory import open_index as open_index
    from .modules.index.index import Index as Index
    from .modules.index.plan import IndexReport as IndexReport
    from .modules.judge.contract import Judge as Judge
    from .modules.judge.contract import Verdict as Verdict
    from .modules.judge.generated import GeneratedJudge as GeneratedJudge
    from .modules.judge.logprob import LogprobJudge as LogprobJudge
    from .modules.judge.oracle import GoldFact as GoldFact
    from .modules.judge.oracle import OracleJudge as OracleJudge
    from .modules.judge.thresholds import LogprobThresholds as LogprobThresholds
    from .modules.llm.endpoint import CallGate as CallGate
    from .modules.llm.endpoint import EndpointLLM as EndpointLLM
    from .modules.llm.factory import create_llm as create_llm
    from .modules.retriever.retriever import Retriever as Retriever
    from .modules.settings import Settings as Settings
    from .modules.settings import load_settings as load_settings

__version__ = "0.1.0"

_HOMES = {
    "CallGate": "modules.llm.endpoint",
    "EndpointLLM": "modules.llm.endpoint",
    "Conversation": "graphs.conversation.conversation",
    "ConversationOptions": "graphs.conversation.turn.context",
    "Conversations": "graphs.conversation.conversations",
    "GeneratedJudge": "modules.judge.generated",
    "GoldFact": "modules.judge.oracle",
    "Index": "modules.index.index",
    "IndexReport": "modules.index.plan",
    "Judge": "modules.judge.contract",
    "JudgetreeError": "modules.errors",
    "Limits": "graphs.threads.context",
    "LogprobJudge": "modules.judge.logprob",
    "LogprobThresholds": "modules.judge.thresholds",
    "ModelCallError": "modules.errors",
    "OracleJudge": "modules.judge.oracle",
    "RagContext": "graphs.threads.context",
    "RagGraph": "graphs.rag.graph",
    "RagResult": "graphs.rag.result",
    "RagSession": "graphs.session",
    "Retriever": "modules.retriever.retriever",
    "SearchTree": "graphs.rag.search_tree",
    "Settings": "modules.settings",
    "ThreadMismatch": "modules.errors",
    "UnknownThread": "modules.errors",
    "UserError": "modules.errors",
    "Verdict": "modules.judge.contract",
    "aask": "graphs.session",
    "ask": "graphs.session",
    "build_closed_book": "graphs.systems.closed_book",
    "build_ircot": "graphs.systems.ircot",
    "build_iter_retgen": "graphs.systems.iter_retgen",
    "build_judge_rag": "graphs.systems.judge_rag",
    "build_naive_rag": "graphs.systems.naive_rag",
    "build_react": "graphs.systems.react",
    "build_self_ask": "graphs.systems.self_ask",
    "create_embeddings": "modules.embedding.embedder",
    "create_llm": "modules.llm.factory",
    "load_settings": "modules.settings",
    "open_index": "modules.index.factory",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - names only


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
