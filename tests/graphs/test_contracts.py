"""The contract checks: every built-in part passes them, and broken ones are told which rule they break."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.graph import END, START, StateGraph

from judgetree import (
    CallGate,
    CallMeter,
    ChatLLM,
    Completion,
    GeneratedJudge,
    GoldFact,
    LangChainRetriever,
    LogprobJudge,
    OracleJudge,
    RagGraph,
    RagState,
    Retriever,
    RunContext,
    Settings,
    Verdict,
    create_llm,
    load_settings,
    open_index,
)
from judgetree.app.scripted.server import ScriptedServer
from judgetree.graphs.systems.registry import SYSTEMS
from judgetree.modules.calls.growing_text import Delta
from judgetree.modules.calls.messages import CallOptions
from judgetree.modules.judge.contract import SetVerdict
from judgetree.modules.llm.cache import CachedLLM, CompletionCache
from judgetree.modules.llm.tuned import with_sampling
from judgetree.testing import ContractError, check_chat_model, check_judge, check_retriever, check_system
from tests.app.conftest import CHAIN, write_corpus


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    with ScriptedServer([CHAIN]) as server:
        yield load_settings(llm=f"{server.base_url}#m", home=tmp_path_factory.mktemp("home"), embeddings="local:use")


@pytest.fixture(scope="module")
def llm(settings: Settings) -> ChatLLM:
    return create_llm(settings.llm_spec, settings, CallGate(8))


def test_the_built_in_judges_keep_the_contract(llm: ChatLLM) -> None:
    check_judge(GeneratedJudge(llm))
    check_judge(LogprobJudge(llm, fallback=GeneratedJudge(llm)))
    fact = GoldFact(quote="KS-1 needs the oil VG 68.", question="Which oil does KS-1 need?")
    check_judge(OracleJudge({fact.question: [fact]}))


def test_the_built_in_models_keep_the_contract(llm: ChatLLM, tmp_path: Path) -> None:
    check_chat_model(llm)
    check_chat_model(with_sampling(llm, temperature=0.5))
    with CompletionCache(tmp_path / "cache.sqlite") as cache:
        for mode in ("write", "off"):
            check_chat_model(CachedLLM(llm, cache, endpoint="contract", mode=mode))


def test_the_built_in_retrievers_keep_the_contract(settings: Settings, tmp_path: Path) -> None:
    with open_index("contract", settings, data_path=write_corpus(tmp_path / "docs")) as index:
        index.get_index_done()
        for search_type in ("hybrid", "sparse", "dense"):
            check_retriever(Retriever(index, search_type=search_type), CHAIN.question)
    check_retriever(LangChainRetriever(Fixed()))


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_systems_keep_the_contract(system: str) -> None:
    check_system(SYSTEMS[system].build)


class Fixed(BaseRetriever):
    """Finds two documents."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(page_content=text) for text in ("one", "two")]


# --- broken ones ---


class BrokenJudge:
    def __init__(self, verdict: Callable[[Document], Any], fingerprint: Callable[[], Any] = dict) -> None:
        self._verdict = verdict
        self.fingerprint = fingerprint

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Any:
        return self._verdict(chunk)


class SyncJudge(BrokenJudge):
    def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Any:  # type: ignore[override]
        return self._verdict(chunk)


class BrokenExpand(BrokenJudge):
    async def judge(self, query: str, chunk: Document, *, meter: CallMeter) -> Any:  # type: ignore[override]
        return self._verdict(chunk)


def shortened(chunk: Document) -> Verdict:
    chunk.page_content = chunk.page_content[:3]
    return Verdict(status="judged", score=0)


USELESS = Verdict(status="judged", score=0)
COUNT, LATER = itertools.count(), itertools.count()


def drawn(number: int) -> Verdict:
    return Verdict(status="judged", score=2 if number % 3 else 0)


RANDOM = "the same verdict each time.*has is_random"
BROKEN_JUDGES = {
    "score of 3": (BrokenJudge(lambda chunk: Verdict(status="judged", score=3)), "allowed values; .*score 3"),  # type: ignore[arg-type]
    "without expand": (BrokenExpand(lambda chunk: USELESS), "with a verdict; it raised TypeError"),
    "not judged": (BrokenJudge(lambda chunk: Verdict(status="pending")), "a verdict is judged or unknown"),
    "always asks": (
        BrokenJudge(lambda chunk: Verdict(status="judged", score=1, next_query="?")),
        "without expand a verdict has no supplementary",
    ),
    "bare number": (BrokenJudge(lambda chunk: 2), "with a verdict; it gave 2"),
    "no question": (BrokenJudge(lambda chunk: Verdict(status="judged", score=1)), "a score of 1 has a supplementary"),
    "changes the chunk": (BrokenJudge(shortened), "leaves the chunk as it is"),
    "not a coroutine": (SyncJudge(lambda chunk: USELESS), "its method is a coroutine"),
    "fails on empty text": (
        BrokenJudge(lambda chunk: Verdict(status="judged", score=0, reason=chunk.page_content[0])),
        "raised IndexError",
    ),
    "random fingerprint": (BrokenJudge(lambda chunk: USELESS, lambda: {"n": str(next(COUNT))}), "the same each time"),
    "random": (BrokenJudge(lambda chunk: drawn(next(COUNT))), RANDOM),
    "random at once": (
        BrokenJudge(lambda chunk: drawn(next(LATER) // 20)),
        RANDOM,
    ),
    "a class": (BrokenJudge, "fingerprint gives texts by name; it raised .*Give an object, not its class"),
    "fingerprint of numbers": (BrokenJudge(lambda chunk: USELESS, lambda: {"n": 1}), "texts by name"),
}


class RandomSets:
    """Judges sets at random."""

    def fingerprint(self) -> dict[str, str]:
        return {}

    def expected_calls(self, chunks: int) -> int:
        return 0

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        drawn_now = drawn(next(COUNT))
        return SetVerdict(verdicts=(USELESS,) * (len(chunks) - 1) + (drawn_now,), suffices=drawn_now.score == 2)


def test_a_judge_may_say_that_it_is_random() -> None:
    for judge in (BrokenJudge(lambda chunk: drawn(next(COUNT))), RandomSets()):
        with pytest.raises(ContractError, match="has is_random"):
            check_judge(judge)
        judge.is_random = True
        check_judge(judge)


@pytest.mark.parametrize("name", BROKEN_JUDGES)
def test_a_broken_judge_is_told_why(name: str) -> None:
    judge, rule = BROKEN_JUDGES[name]
    with pytest.raises(ContractError, match=rule):
        check_judge(judge)


class BrokenRetriever:
    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "x"}

    async def asearch(self, query: str, *, meter: CallMeter) -> Any:
        return self._find()


def chunk(**metadata: object) -> Document:
    return Document(page_content="text", metadata={"chunk_id": "a", "source": "a.md", **metadata})


SHARED = [(chunk(), 1.0)]
BROKEN_RETRIEVERS = {
    "documents only": (lambda: [chunk()], r"gives a list of \(Document, score\)"),
    "nothing": (list, "finds something"),
    "no id": (lambda: [(chunk(chunk_id=None), 1.0)], "each chunk has a chunk_id"),
    "an id twice": (lambda: [(chunk(), 1.0), (chunk(), 1.0)], "a chunk_id is found once"),
    "worst first": (lambda: [(chunk(), 0.1), (chunk(chunk_id="b"), 0.2)], "the best chunk is first"),
    "not a number": (lambda: [(chunk(), float("nan"))], "finite number"),
    "an object in metadata": (lambda: [(chunk(when=object()), 1.0)], "saved as JSON"),
    "shared documents": (lambda: SHARED, "the same query finds the same chunks"),
    "other ids each time": (lambda: [(chunk(chunk_id=str(next(COUNT))), 1.0)], "the same query finds the same chunks"),
}


@pytest.mark.parametrize("name", BROKEN_RETRIEVERS)
def test_a_broken_retriever_is_told_why(name: str) -> None:
    find, rule = BROKEN_RETRIEVERS[name]
    with pytest.raises(ContractError, match=rule):
        check_retriever(BrokenRetriever(find))


class BrokenModel:
    """A model without one of the things that it has to do."""

    model = "broken"

    def __init__(self, lacks: str) -> None:
        self._lacks = lacks

    async def complete(
        self, messages: object, *, meter: CallMeter, options: CallOptions, on_text: Any = None, **_: object
    ) -> Any:
        [stop] = options.stop or ["none"]
        text = "white" if self._lacks == "stop" else "white".partition(stop)[0]
        if self._lacks != "budget":
            meter.reserve()
        if self._lacks != "record":
            count = -1 if self._lacks == "counts" else 1
            meter.record(kind="chat", model="broken", started=time.perf_counter(), prompt_tokens=count)
        if on_text and self._lacks != "pieces":
            on_text(Delta("white" if self._lacks == "unheard stop" else text))
        return "white" if self._lacks == "completion" else Completion(text=text, thinking="", finish_reason="stop")


@pytest.mark.parametrize(
    ("lacks", "rule"),
    [
        ("budget", "a spent budget raises BudgetSpent"),
        ("record", "a call has one record"),
        ("counts", "token counts are whole numbers"),
        ("pieces", "the pieces that are heard are the text"),
        ("completion", "complete gives a Completion"),
        ("stop", "an answer ends before a stop text, here 'i'; it gave 'white'"),
        ("unheard stop", "an answer ends before a stop text, here 'i', for listeners too"),
    ],
)
def test_a_broken_model_is_told_why(lacks: str, rule: str) -> None:
    with pytest.raises(ContractError, match=rule):
        check_chat_model(BrokenModel(lacks))
    check_chat_model(BrokenModel("nothing"))


async def silent(state: RagState) -> dict[str, object]:
    return {"answer": ""}


async def failing(state: RagState) -> dict[str, object]:
    raise KeyError("evidence")


async def unrecorded(state: RagState, runtime: Any) -> dict[str, object]:
    reply = await runtime.context.services.reader.complete([], meter=CallMeter(node="unrecorded"))
    return {"answer": reply.text, "status": "answered"}


@pytest.mark.parametrize(
    ("node", "rule"),
    [
        (silent, "a run ends with an answer"),
        (failing, "a run ends with an answer; it raised KeyError"),
        (unrecorded, "each call is in the records of the state"),
    ],
)
def test_a_broken_system_is_told_why(node: Any, rule: str) -> None:
    def build(**options: Any) -> RagGraph:
        builder = StateGraph(RagState, context_schema=RunContext)
        builder.add_node("only", node)
        builder.add_edge(START, "only")
        builder.add_edge("only", END)
        return RagGraph(builder, system="broken", **options)

    with pytest.raises(ContractError, match=rule):
        check_system(build)
    for other in (lambda **options: None, lambda context: None):
        with pytest.raises(ContractError, match="a function that builds a RagGraph"):
            check_system(other)


def test_a_builder_without_defaults_is_checked() -> None:
    def build(*, checkpointer: Any, context: Any, durability: Any) -> RagGraph:
        return SYSTEMS["naive"].build(checkpointer=checkpointer, context=context, durability=durability)

    check_system(build)


class OneDocument(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [Document(page_content="KS-1 needs the oil VG 68.")]


def test_parts_of_langchain_are_checked_as_they_are_used() -> None:
    check_retriever(OneDocument())
    check_chat_model(FakeListChatModel(responses=["VG 68"]))
    with pytest.raises(ContractError, match=r"model and complete; llm=<class .* is no chat model"):
        check_chat_model(FakeListChatModel)  # type: ignore[arg-type]
