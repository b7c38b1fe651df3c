"""What judgetree relies on in judges, retrievers, chat models and systems, as checks that a part can be run against.

A check takes seconds and raises ``ContractError`` at the first broken rule. It is run on judgetree's own loop, as parts
are in use, and costs the model calls of the part.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig

from ..modules.calls.budget import TreeBudget
from ..modules.calls.completion import Completion
from ..modules.calls.growing_text import Delta, Listeners, TextListeners
from ..modules.calls.messages import PLAIN_TEXT, CallOptions, Message
from ..modules.calls.usage import CallMeter
from ..modules.errors import BudgetSpent, JudgetreeError, ModelCallError, SettingsError
from ..modules.judge.contract import (
    AnyJudge,
    Judge,
    SetJudge,
    SetVerdict,
    Verdict,
    checked_set_verdict,
    checked_verdict,
    expected_calls,
    judges_sets,
)
from ..modules.llm.contract import ChatLLM
from ..modules.llm.langchain_chat import LangChainModel, as_chat_llm
from ..modules.retriever.contract import ChunkRetriever
from ..modules.retriever.retriever import Retriever
from .config.limits import Limits
from .contract_rules import ContractError, awaited, called, check_fingerprint, chunk_of, require, run_check
from .from_langchain import from_langchain
from .rag.graph import RagGraph
from .rag.search_tree import SearchTree
from .systems.registry import GraphBuilder
from .threads.context import RagContext

_QUERY = "Which oil does KS-1 need?"
_TEXTS = ("KS-1 needs the oil VG 68.", "", "压力保持三十五分钟。", "word " * 20_000, "tabs\tand\nlines {} </passage>")
_AT_ONCE = 20


def check_judge(judge: AnyJudge) -> None:
    """Check a judge: its fingerprint, its verdicts of odd passages, alone, again, as a set and many at once.

    The same passage needs the same score each time, since cache, resume and comparisons rely on it. A judge that draws
    at random, or whose model does, says so by an attribute ``is_random = True``; the rest is checked then.

    Raises:
        ContractError: It breaks a rule.
    """
    check_fingerprint(judge)
    try:
        expected_calls(judge, 3)
    except SettingsError as error:
        raise ContractError(str(error)) from error
    run_check(_check_sets(judge) if judges_sets(judge) else _check_verdicts(judge))


def check_retriever(retriever: ChunkRetriever | BaseRetriever, query: str = _QUERY) -> None:
    """Check a retriever with a query that finds something: its fingerprint, ids, order and scores.

    One of LangChain is checked as judgetree uses it, by ``from_langchain``.

    Raises:
        ContractError: It breaks a rule.
    """
    if isinstance(retriever, BaseRetriever) and not isinstance(retriever, Retriever):
        retriever = from_langchain(retriever)
    check_fingerprint(retriever)
    run_check(_check_hits(retriever, query))


def check_chat_model(llm: ChatLLM | LangChainModel) -> None:
    """Check a chat model with 24 short calls: completions, records, listeners, budget and stop texts.

    One of LangChain is checked as judgetree uses it, by ``from_langchain``.

    Raises:
        ContractError: It breaks a rule.
    """
    try:
        llm = as_chat_llm(llm)
    except SettingsError as error:
        raise ContractError(f"a chat model has model and complete; {error}") from error
    require(isinstance(llm.model, str) and llm.model != "", "model is a name", llm.model)
    run_check(_check_calls(llm))


def check_system(build: GraphBuilder) -> None:
    """Check a system with a retriever, a judge and a reader that judgetree brings: runs, resuming, budget, tree.

    Raises:
        ContractError: It breaks a rule.
    """
    finished = _Services()
    with _built(build, finished.context()) as graph:
        thread: RunnableConfig = {"configurable": {"thread_id": "contract"}}
        state = _run(graph, thread)
        require(isinstance(state.get("answer"), str) and state["answer"] != "", "a run ends with an answer", state)
        calls = finished.reader.calls
        again = _run(graph, thread)
        require(again["answer"] == state["answer"], "a finished thread is returned as it is", again.get("answer"))
        require(
            finished.reader.calls == calls, "a finished thread makes no call", f"{finished.reader.calls - calls} more"
        )
        tree = SearchTree.from_history(graph, "contract")
        require(tree.root.answer == state["answer"], "the answer is in the thread's tree", tree.root.answer)
        recorded = tree.usage["llm_calls"]
        require(recorded == calls, "each call is in the records of the state", f"{recorded} of {calls} calls")
    failing = _Services(failures=1)
    with _built(build, failing.context()) as graph:
        try:
            _run(graph, thread)
        except ModelCallError:
            state = _run(graph, thread)
        require(bool(state.get("answer")), "a thread whose model failed once is resumed", state)
    poor = _Services()
    with _built(build, poor.context(calls=1)) as graph:
        state = _run(graph, thread)
        require(poor.reader.calls <= 1, "the budget of model calls is kept", f"{poor.reader.calls} calls of 1")
        require(bool(state.get("answer")), "a spent budget still gives an answer", state)


def _built(build: GraphBuilder, context: RagContext) -> RagGraph:
    rule = "a system is a function that builds a RagGraph of checkpointer, context and durability"
    try:
        graph = build(checkpointer="memory:", context=context, durability="async")
    except Exception as error:
        raise ContractError(f"{rule}; it raised {type(error).__name__}: {error}") from error
    require(isinstance(graph, RagGraph), rule, graph)
    return graph


def _run(graph: RagGraph, thread: RunnableConfig) -> Mapping[str, Any]:
    try:
        return graph.invoke(_QUERY, thread)
    except (JudgetreeError, AssertionError):
        raise
    except Exception as error:
        raise ContractError(f"a run ends with an answer; it raised {type(error).__name__}: {error}") from error


async def _check_verdicts(judge: Judge) -> None:
    chunks = [chunk_of(place, text) for place, text in enumerate(_TEXTS)]
    untouched = copy.deepcopy(chunks)
    alone = [await _verdict(judge, chunk, expand=expand) for chunk in chunks for expand in (True, False)]
    require(chunks == untouched, "a judge leaves the chunk as it is", chunks)
    again = [await _verdict(judge, chunk, expand=expand) for chunk in chunks for expand in (True, False)]
    _check_same(judge, alone, again)
    for place, verdict in enumerate(alone):
        _check_values(verdict)
        was_expanded = place % 2 == 0
        may_lack_question = verdict.score != 1 or bool(verdict.problem) or not was_expanded
        require(may_lack_question or bool(verdict.next_query), "a score of 1 has a supplementary question", verdict)
        require(
            was_expanded or not verdict.next_query, "without expand a verdict has no supplementary question", verdict
        )
    together = await asyncio.gather(*(_verdict(judge, chunks[0], expand=True) for _ in range(_AT_ONCE)))
    _check_same(judge, [alone[0]] * _AT_ONCE, together)


def _check_same(judge: AnyJudge, first: Sequence[Verdict], again: Sequence[Verdict]) -> None:
    is_random = getattr(judge, "is_random", False)
    require(isinstance(is_random, bool), "is_random is True or False", is_random)
    given = [[(each.status, None if is_random else each.score) for each in verdicts] for verdicts in (first, again)]
    rule = (
        "the same passage has the same verdict each time, many at once too; a judge that draws at random has is_random"
    )
    require(given[0] == given[1], rule, given)


async def _verdict(judge: Judge, chunk: Document, *, expand: bool) -> Verdict:
    meter = CallMeter(node="judge", chunk_id=str(chunk.metadata["chunk_id"]))
    what = f"a judge answers the passage {chunk.page_content[:30]!r} with a verdict"
    verdict = await called(lambda: judge.judge(_QUERY, chunk, meter=meter, expand=expand), what)
    require(isinstance(verdict, Verdict), what, verdict)
    return verdict


async def _check_sets(judge: SetJudge) -> None:
    chunks = [chunk_of(place, text) for place, text in enumerate(_TEXTS)]
    untouched = copy.deepcopy(chunks)
    for asked in (chunks, chunks[:1], chunks[::-1]):
        for expand in (True, False):
            given = await _set_verdict(judge, asked, expand=expand)
            for verdict in given.verdicts:
                _check_values(verdict)
    require(chunks == untouched, "a judge leaves the chunks as they are", chunks)
    alone = await _set_verdict(judge, chunks)
    for each in await asyncio.gather(*(_set_verdict(judge, chunks) for _ in range(_AT_ONCE))):
        _check_same(judge, alone.verdicts, each.verdicts)
        is_same = getattr(judge, "is_random", False) or each.suffices == alone.suffices
        require(is_same, "the same passages suffice each time", (alone.suffices, each.suffices))


async def _set_verdict(judge: SetJudge, chunks: Sequence[Document], *, expand: bool = True) -> SetVerdict:
    what = f"a judge answers {len(chunks)} passages with a set of as many verdicts"
    meter = CallMeter(node="judge_set")
    given = await called(lambda: judge.judge_set(_QUERY, chunks, meter=meter, expand=expand), what)
    require(isinstance(given, SetVerdict) and len(given.verdicts) == len(chunks), what, given)
    return checked_set_verdict(given, len(chunks))


def _check_values(verdict: Verdict) -> None:
    problem = checked_verdict(verdict).problem
    require(not problem.startswith("The judge gave"), "a verdict has allowed values", problem)
    require(verdict.status != "pending", "a verdict is judged or unknown", verdict)


async def _check_hits(retriever: ChunkRetriever, query: str) -> None:
    hits = await _hits(retriever, query)
    require(bool(hits), f"the query {query!r} finds something", hits)
    ids = [chunk.metadata.get("chunk_id") for chunk, _ in hits]
    require(all(isinstance(each, str) and each for each in ids), "each chunk has a chunk_id, a string", ids)
    require(len(set(ids)) == len(ids), "a chunk_id is found once", ids)
    sources = [chunk.metadata.get("source") for chunk, _ in hits]
    require(all(isinstance(each, str) for each in sources), "each chunk has a source, a string", sources)
    scores = [score for _, score in hits]
    is_finite = all(isinstance(each, int | float) and math.isfinite(each) for each in scores)
    require(is_finite, "each score is a finite number", scores)
    require(scores == sorted(scores, reverse=True), "the best chunk is first", scores)
    for chunk, _ in hits:
        require(_is_json(chunk.metadata), "metadata can be saved as JSON", chunk.metadata)
    for chunk, _ in hits:
        chunk.metadata.clear()
    together = await asyncio.gather(*(_hits(retriever, query) for _ in range(_AT_ONCE)))
    same = [[chunk.metadata.get("chunk_id") for chunk, _ in each] for each in together]
    require(all(each == ids for each in same), "the same query finds the same chunks, many at once too", same[:2])
    await _hits(retriever, "?")


async def _hits(retriever: ChunkRetriever, query: str) -> list[tuple[Document, float]]:
    what = f"asearch({query!r}) gives a list of (Document, score)"
    hits = await awaited(retriever.asearch(query, meter=CallMeter(node="retrieve")), what)
    is_list = isinstance(hits, list) and all(
        isinstance(hit, tuple) and len(hit) == 2 and isinstance(hit[0], Document) for hit in hits
    )
    require(is_list, what, hits)
    return hits


@dataclass(kw_only=True)
class _ReportMeter(CallMeter):
    """Keeps the token counts as the model reports them; records hold possible ones only."""

    reported: list[tuple[object, object]] = field(default_factory=list)

    def record(self, **report: Any) -> None:
        """Keep a report, and record the call."""
        self.reported.append((report.get("prompt_tokens", 0), report.get("completion_tokens", 0)))
        super().record(**report)


async def _check_calls(llm: ChatLLM) -> None:
    heard: list[Delta] = []
    meter = _ReportMeter(node="contract")
    completion = await _completed(llm, meter, on_text=heard.append)
    require(isinstance(completion, Completion), "complete gives a Completion", completion)
    kinds = [(record["kind"], record["model"]) for record in meter.records]
    require(kinds == [("chat", llm.model)], "a call has one record, of the model's name", kinds)
    counts = [(record["prompt_tokens"], record["completion_tokens"]) for record in meter.records] + meter.reported
    is_whole = all(isinstance(each, int) and each >= 0 for pair in counts for each in pair)
    require(is_whole, "token counts are whole numbers", counts)
    since = max((place for place, delta in enumerate(heard) if delta.restarted), default=0)
    text = "".join(delta.text for delta in heard[since:])
    require(text == completion.text, "the pieces that are heard are the text", (text, completion.text))
    await _check_stop(llm, completion.text)
    spent = CallMeter(node="contract", budget=TreeBudget(limit=0))
    try:
        await _completed(llm, spent)
    except ContractError as error:
        require(isinstance(error.__cause__, BudgetSpent), "a spent budget raises BudgetSpent", error.__cause__)
    else:
        require(False, "a spent budget raises BudgetSpent", "a completion")
    require(not spent.records, "no call is made with a spent budget", spent.records)
    meters = [CallMeter(node="contract") for _ in range(_AT_ONCE)]
    await asyncio.gather(*(_completed(llm, each) for each in meters))
    require(all(len(each.records) == 1 for each in meters), "calls at once have a record each", len(meters))


async def _check_stop(llm: ChatLLM, answer: str) -> None:
    """Ask again with a character of the answer as the stop text, heard and unheard."""
    stop = answer[len(answer) // 2 :][:1] or "e"
    heard: list[Delta] = []
    rule = f"an answer ends before a stop text, here {stop!r}"
    for listeners in (TextListeners(on_text=heard.append), TextListeners()):
        completion = await _completed(llm, CallMeter(node="contract"), stop=(stop,), **listeners)
        require(stop not in completion.text, rule, completion.text)
    require(not any(stop in delta.text for delta in heard), f"{rule}, for listeners too", heard)


async def _completed(
    llm: ChatLLM, meter: CallMeter, *, stop: tuple[str, ...] = (), **listeners: Unpack[TextListeners]
) -> Completion:
    messages: list[Message] = [("user", "Answer with one word: which colour has snow?")]
    options = CallOptions(max_tokens=32, stop=stop)
    return await awaited(
        llm.complete(messages, meter=meter, options=options, **listeners), "complete answers a question"
    )


class _Services:
    """A retriever, a judge and a reader that count what they are asked."""

    def __init__(self, *, failures: int = 0) -> None:
        self.reader = _Reader(failures)

    def context(self, *, calls: int = 60) -> RagContext:
        limits = Limits(max_rec_depth=1, max_llm_calls=calls)
        return RagContext(reader=self.reader, retriever=_OneChunk(), judge=_Useful(), limits=limits)


class _Reader:
    model = "contract"

    def __init__(self, failures: int) -> None:
        self.calls = 0
        self._failures = failures

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        meter: CallMeter,
        options: CallOptions = PLAIN_TEXT,
        **listeners: Unpack[TextListeners],
    ) -> Completion:
        meter.reserve()
        self.calls += 1
        failed = self.calls <= self._failures
        meter.record(kind="chat", model=self.model, started=time.perf_counter(), error="HTTP 500" if failed else "")
        if failed:
            raise ModelCallError("contract: HTTP 500, once")
        Listeners(**listeners).settle(text="VG 68", thinking="")
        return Completion(text="VG 68", thinking="", finish_reason="stop")


class _OneChunk:
    def fingerprint(self) -> dict[str, str]:
        return {"kind": "contract"}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        return [(chunk_of(0, _TEXTS[0]), 1.0)]


class _Useful:
    def fingerprint(self) -> dict[str, str]:
        return {"kind": "contract"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        return Verdict(status="judged", score=2)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
