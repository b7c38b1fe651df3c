"""The exports of ``judgetree``; each is imported when it is first used."""

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

__version__: str
