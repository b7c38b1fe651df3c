"""Prompts of one's own in graphs, sessions and conversations: every call uses them, and they are another run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from langchain_core.documents import Document

from judgetree import Verdict
from judgetree.graphs.conversation.conversation import Conversation
from judgetree.graphs.conversation.turn.context import ConversationOptions, TurnLimits, turn_fingerprint
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.session import RagSession
from judgetree.graphs.systems.registry import SYSTEMS
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.fingerprint import fingerprint_of
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.prompts import Prompt, Prompts
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.config.reading import AnswerStrategy
from judgetree.modules.errors import SettingsError, ThreadMismatch
from judgetree.modules.judge.factory import create_judge
from judgetree.modules.judge.generated import GeneratedJudge
from judgetree.modules.llm.contract import ChatLLM
from judgetree.modules.memory.memory import ConversationMemory
from judgetree.modules.prompts.reading import load_prompts
from judgetree.modules.prompts.table import PROMPTS
from judgetree.modules.settings import Settings, load_settings
from judgetree.modules.tools.factory import create_tools
from tests.graphs.conversation.talk import TABLE as TALK_TABLE
from tests.graphs.conversation.talk import settings_in
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk
from tests.graphs.two_steps import ROOT
from tests.modules.fake_embeddings import BagOfWordsEmbedder


def own(*names: str) -> Prompts:
    """Prompts whose system messages are their names, after an example."""
    return load_prompts(
        {name: {"system": f"{name}: JSON", "examples": [{"user": "x", "assistant": "y"}]} for name in names}
    )


ALL = own(*PROMPTS)
SAID = {
    "judge": json.dumps({"reason": "", "score": 1, "next_query": "Which oil does class Delta need?"}),
    "self_ask": "Follow up: Which oil does class Delta need?",
    "react": "Thought: more.\nAction: Search[Which oil does class Delta need?]",
    "search_r1": "<think>more</think> <search>Which oil does class Delta need?</search>",
    "select_turns": json.dumps({"turns": [1]}),
    "assess_history": json.dumps({"question": "Which oil?", "useful": [], "answer": ""}),
    "direct_answer": json.dumps({"small_talk": False, "reply": ""}),
    "reader": "I cannot answer this question.",
}


class Named(FakeLLM):
    """A model that is shown only own prompts, and keeps their names."""

    def __init__(self) -> None:
        super().__init__(self._say)
        self.names: set[str] = set()

    def _say(self, messages: Sequence[Message]) -> str:
        name = messages[0][1].removesuffix(": JSON")
        assert messages[1:3] == [("user", "x"), ("assistant", "y")], name
        self.names.add(name)
        return SAID.get(name, "Which oil does class Delta need?")


class TwoChunks(TableRetriever):
    """Finds two chunks, whatever is asked."""

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        return [(chunk("a", "KS-1 is class Delta."), 1.0), (chunk("b", "Delta needs Vellin."), 0.5)]


NONE = Prompts()


def fingerprint(system: str, prompts: Prompts = NONE, **changes: object) -> dict[str, str]:
    llm = FakeLLM(lambda messages: "")
    context = RagContext(
        reader=llm,
        retriever=TableRetriever({}) if SYSTEMS[system].retrieves else None,
        judge=GeneratedJudge(llm, prompts=prompts) if SYSTEMS[system].judges else None,
        prompts=prompts,
    )
    return fingerprint_of(query="q", system=system, services=replace(context, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", get_args(AnswerStrategy))
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_fingerprint_changes_exactly_with_the_prompts_that_a_run_uses(system: str, strategy: AnswerStrategy) -> None:
    llm = Named()
    retriever = TwoChunks({}) if SYSTEMS[system].retrieves else None
    judge = GeneratedJudge(llm, prompts=ALL) if SYSTEMS[system].judges else None
    context = RagContext(reader=llm, retriever=retriever, judge=judge, strategy=strategy, prompts=ALL)
    with SYSTEMS[system].build(checkpointer="memory:", context=context) as graph:
        assert graph.invoke(ROOT)["answer"]
    default = fingerprint(system, strategy=strategy)
    counted = {name for name in PROMPTS if fingerprint(system, own(name), strategy=strategy) != default}
    assert llm.names <= counted
    assert counted - llm.names <= {"reader"}, "a strategy takes the reader's prompt where it has one passage to read"


def test_an_agent_with_tools_has_a_prompt_of_its_own() -> None:
    tools = create_tools(["calculator"], Settings(_env_file=None))
    assert fingerprint("react", own("react_tools"), tools=tools) != fingerprint("react", tools=tools)
    assert fingerprint("react", own("react"), tools=tools) == fingerprint("react", tools=tools)


def test_the_digest_counts_where_evidence_may_be_too_long() -> None:
    assert fingerprint("naive", own("digest")) == fingerprint("naive")
    assert fingerprint("naive", own("digest"), context_tokens=9) != fingerprint("naive", context_tokens=9)


def test_a_system_of_ones_own_may_use_any_prompt() -> None:
    llm = FakeLLM(lambda messages: "")
    known = {
        name: fingerprint_of(query="q", system="mine", source="1", services=RagContext(reader=llm, prompts=prompts))
        for name, prompts in (("", Prompts()), ("react", own("react")))
    }
    assert known[""] != known["react"]


# --- sessions ---


def session_of(llm: ChatLLM, folder: Path, prompts: Prompts) -> RagSession:
    context = RagContext(reader=llm, prompts=prompts)
    return RagSession(system="llm", context=context, settings=load_settings(home=folder))


def test_a_finished_thread_of_other_prompts_is_refused(tmp_path: Path) -> None:
    llm = FakeLLM(lambda messages: messages[0][1][:6])
    with session_of(llm, tmp_path, Prompts()) as session:
        assert session.ask(ROOT, thread_id="t").answer == "Answer"
    with session_of(llm, tmp_path, own("closed_book")) as session:
        with pytest.raises(ThreadMismatch, match=r"reader\.prompt: .*--prompts or prompts="):
            session.ask(ROOT, thread_id="t")
        assert session.ask(ROOT, thread_id="u").answer == "closed"
    with session_of(llm, tmp_path, own("reader")) as session:
        assert session.ask(ROOT, thread_id="t").usage_this_run["llm_calls"] == 0


def test_a_session_takes_a_file_or_a_mapping_and_else_that_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("format: judgetree-prompts/1\nreader: {system: Mine.}\n", encoding="utf-8")
    settings = load_settings(home=tmp_path, prompts=file)
    assert RagSession(system="llm", settings=settings).prompts["reader"].system == "Mine."
    assert len(RagSession(system="llm", settings=settings, prompts={}).prompts) == 0
    chosen = Conversations(system="llm", settings=settings, prompts={"reader": {"system": "Other."}})
    assert chosen.services.session.prompts["reader"].system == "Other."
    assert RagSession(system="llm", settings=load_settings(home=tmp_path), prompts=str(file)).prompts
    with pytest.raises(SettingsError, match=r"prompts=load_prompts"):
        RagContext(reader=FakeLLM(lambda _: ""), prompts={})  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"prompts cannot be set beside a context"):
        RagSession(context=RagContext(reader=FakeLLM(lambda _: "")), prompts=file, settings=settings)


# --- judges ---


class PromptedJudge:
    """A judge of one's own that takes prompts."""

    def __init__(self, llm: ChatLLM, prompts: Prompts) -> None:
        self.prompts = prompts

    def fingerprint(self) -> dict[str, str]:
        return {}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        return Verdict(status="judged", score=0)


@pytest.mark.parametrize("kind", ["generated", "logprob", PromptedJudge])
def test_a_judge_takes_prompts_and_says_so(kind: object, tmp_path: Path) -> None:
    def said(prompts: Prompts) -> dict[str, str]:
        settings = load_settings(home=tmp_path)
        return create_judge(kind, FakeLLM(lambda _: ""), spec="x", settings=settings, prompts=prompts).fingerprint()

    assert said(own("judge", "judge_needed")) != said(Prompts())
    assert said(own("reader")) != said(Prompts()) if kind is PromptedJudge else said(own("reader")) == said(Prompts())


# --- conversations ---


def test_every_call_of_a_turn_uses_them(tmp_path: Path) -> None:
    llm, settings = Named(), settings_in(tmp_path)
    with Conversations(
        system="naive",
        context=RagContext(reader=llm, retriever=TableRetriever(TALK_TABLE), prompts=ALL),
        memory=ConversationMemory(BagOfWordsEmbedder(), uri=settings.milvus_address),
        options=ConversationOptions(direct_answer=True, answer_without_evidence=True, summary_memory=True),
        limits_of_prompts=TurnLimits(max_recent_turns=1),
        settings=settings,
    ) as talks:
        for number in range(4):
            assert talks.conversation("s").ask(f"Which class is KS-{number}?").status == "answered"
        never = ConversationOptions(answer_from_history="never")
        Conversation(talks.services, "s", never).ask("Which class is KS-9?")
    assert llm.names == {
        *("direct_answer", "select_turns", "assess_history", "answer_from_knowledge", "fold_summary", "condense"),
        "reader",
    }


def test_a_turn_with_other_prompts_is_another_turn() -> None:
    def digest(prompts: Prompts) -> str:
        return turn_fingerprint(ConversationOptions(), TurnLimits(), prompts)

    assert digest(Prompts()) == digest(own("judge", "ircot")) != digest(own("condense")) != digest(own("reader"))


def test_an_example_counts_as_a_part_of_the_prompt() -> None:
    reader = PROMPTS["reader"]
    shown = Prompt(name="reader", system=reader.system, user=reader.user, examples=(("x", "y"),))
    assert fingerprint("naive", load_prompts({"reader": shown})) != fingerprint("naive")


def test_naive_does_not_change_with_the_judges_prompt() -> None:
    assert fingerprint("naive", own("judge", "judge_needed")) == fingerprint("naive")
    assert fingerprint("judge", own("judge")) != fingerprint("judge")
