"""Turns whose candidates are filtered before the answer, and turns whose prompts depend on thinking."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from judgetree.graphs.conversation.turn.context import ConversationOptions, TurnLimits, turn_fingerprint
from judgetree.graphs.conversation.turn.events import SourceEvent
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.growing_text import Listeners
from judgetree.modules.calls.journaled import JournaledLLM
from judgetree.modules.calls.messages import CallOptions, Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelSetupError, SettingsError
from judgetree.modules.judge.oracle import GoldFact, OracleJudge
from judgetree.modules.memory.memory import ConversationMemory
from judgetree.modules.reader.evidence_choice import EvidenceChoice
from tests.graphs.conversation.talk import CLASS, DOWN, OIL, TABLE, TalkingLLM, saved, settings_in
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk
from tests.modules.fake_embeddings import BagOfWordsEmbedder

Opened = Callable[..., Conversations]
WITH = {"insert_block": True}
NOISE = chunk("noise", "KS-2 is blue.")


@pytest.fixture
def retriever() -> TableRetriever:
    """Two chunks for the class, the useless one first."""
    return TableRetriever({**TABLE, CLASS: [NOISE, *TABLE[CLASS]]})


def blocked(belongs: bool, key_passage: str = "") -> str:
    return json.dumps({"belongs": belongs, "key_passage": key_passage, "reason": "so it is"})


def test_what_does_not_belong_is_taken_out_before_the_answer(
    opened: Opened, llm: TalkingLLM, retriever: TableRetriever
) -> None:
    talk = opened(**WITH, retriever=retriever).conversation("s")
    events = list(talk.stream(CLASS))
    assert llm.asked() == ["block", "block", "read"]
    assert "KS-2" not in llm.calls[-1][1][1]
    turn = talk.history()[0]
    assert [(ref["chunk_id"], ref["key_passage"], ref["reason"]) for ref in turn["chunks"]] == [
        ("class", "Delta", "so it is")
    ]
    assert turn["insert_block"] == {"judged": 2, "taken_out": 1, "unknown": 0, "none_left": False}
    assert [(e.chunk_id, e.key_passage, e.reason) for e in events if isinstance(e, SourceEvent)] == [
        ("class", "Delta", "so it is")
    ]
    assert turn["usage"]["llm_calls"] == 3


def test_without_the_filter_nothing_is_asked_and_nothing_is_told(
    opened: Opened, llm: TalkingLLM, retriever: TableRetriever
) -> None:
    turn = saved(opened(retriever=retriever).conversation("s").ask(CLASS))
    assert llm.asked() == ["read"]
    assert "insert_block" not in turn
    assert all("key_passage" not in ref for ref in turn["chunks"])


def test_the_filter_has_a_model_of_its_own(opened: Opened, llm: TalkingLLM, retriever: TableRetriever) -> None:
    own, another = FakeLLM(lambda _: blocked(True)), FakeLLM(lambda _: blocked(True))
    talk = opened(**WITH, insert_block_llm=own, retriever=retriever).conversation("s")
    talk.ask(CLASS)
    assert (len(own.calls), llm.asked()) == (2, ["read"])
    turn = saved(talk.ask(CLASS, parent_turn_id="", insert_block_llm=another, regenerate=True))
    assert (len(own.calls), len(another.calls)) == (2, 2)
    assert turn["overrides"] == {"insert_block_llm": "fake"}
    talk.ask(CLASS, parent_turn_id="", insert_block=False)
    assert (len(own.calls), len(another.calls)) == (2, 2)


def test_none_left_is_told_and_the_reader_sees_all(opened: Opened, llm: TalkingLLM, retriever: TableRetriever) -> None:
    llm.broken["block"] = blocked(False)
    result = opened(**WITH, retriever=retriever).conversation("s").ask(CLASS)
    assert result.answer == "Delta"
    assert "KS-2" in llm.calls[-1][1][1]
    turn = saved(result)
    assert turn["insert_block"]["none_left"] is True
    assert {ref["chunk_id"] for ref in turn["chunks"]} == {"class", "noise"}


def test_a_failed_filter_model_leaves_the_chunks_in(opened: Opened, llm: TalkingLLM, retriever: TableRetriever) -> None:
    llm.broken["block"] = DOWN
    turn = saved(opened(**WITH, retriever=retriever).conversation("s").ask(CLASS))
    assert (turn["answer"], turn["insert_block"]["unknown"]) == ("Delta", 2)
    assert {ref["reason"] for ref in turn["chunks"]} == {"unknown: the model is down"}


def test_a_later_turn_judges_a_kept_chunk_anew(opened: Opened, llm: TalkingLLM) -> None:
    talk = opened(**WITH).conversation("s")
    talk.ask(CLASS)
    llm.broken["block"] = DOWN
    turn = saved(talk.ask("And its oil?", insert_block=False))
    assert all("key_passage" not in ref for ref in turn["chunks"])


def test_a_turn_that_failed_later_asks_the_filter_no_second_time(
    opened: Opened, llm: TalkingLLM, retriever: TableRetriever
) -> None:
    talk = opened(**WITH, retriever=retriever).conversation("s")
    llm.broken["read"] = DOWN
    assert talk.ask(CLASS).status == "failed"
    llm.asked()
    llm.broken.clear()
    again = talk.ask(CLASS)
    assert (again.resumed, llm.asked()) == (True, ["read"])
    assert [ref["key_passage"] for ref in saved(again)["chunks"]] == ["Delta"]


def test_what_a_taken_out_chunk_asked_for_is_no_source(tmp_path: Path, llm: TalkingLLM) -> None:
    """The chunk about KS-1 asks for the oil, and its sub-run finds that; the reader sees neither."""
    deep = "Which oil does KS-1 need?"
    facts = [
        GoldFact(quote="KS-1 is class Delta", question=CLASS, remaining_question=OIL),
        GoldFact(quote="Class Delta needs Vellin", question=OIL),
    ]
    own = FakeLLM(lambda messages: blocked("Spare" in messages[1][1]))
    services = RagContext(
        reader=llm,
        retriever=TableRetriever({**TABLE, deep: [*TABLE[CLASS], chunk("spare", "Spare oil is green.")]}),
        judge=OracleJudge({deep: facts, OIL: facts[1:]}),
        evidence=EvidenceChoice(evidence="all"),
    )
    settings = settings_in(tmp_path)
    memory = ConversationMemory(BagOfWordsEmbedder(), uri=settings.milvus_address)
    with memory, Conversations(system="judge", context=services, memory=memory, settings=settings) as talks:
        talk = talks.conversation("s")
        with_all = saved(talk.ask(deep))
        turn = saved(talk.ask(deep, parent_turn_id="", insert_block=True, insert_block_llm=own))
    assert {ref["chunk_id"] for ref in with_all["chunks"]} == {"class", "spare", "oil"}
    assert [ref["chunk_id"] for ref in turn["chunks"]] == ["spare"]
    assert len(own.calls) == 2, "the root's chunks alone are filtered"


class OnceWrongLLM(JournaledLLM):
    """Refuses its first call about KS-1."""

    model, endpoint = "once-wrong", "fake"

    def __init__(self) -> None:
        self.about: list[str] = []

    async def _call(
        self, messages: Sequence[Message], meter: CallMeter, options: CallOptions, listeners: Listeners
    ) -> Completion:
        await meter.about_to_send()
        self.about.append("KS-1" if "KS-1 is class" in messages[1][1] else "KS-2")
        meter.record(kind="chat", model=self.model, started=0.0, prompt_tokens=1, completion_tokens=1)
        if self.about.count("KS-1") == 1 and self.about[-1] == "KS-1":
            raise ModelSetupError("no such model")
        return Completion(text=blocked(True), thinking="", finish_reason="stop")


def test_a_wrong_key_ends_the_turn_and_other_chunks_are_not_paid_for_again(
    opened: Opened, retriever: TableRetriever
) -> None:
    wrong = OnceWrongLLM()
    talk = opened(**WITH, insert_block_llm=wrong, retriever=retriever).conversation("s")
    with pytest.raises(ModelSetupError):
        talk.ask(CLASS)
    result = talk.ask(CLASS)
    assert (result.status, result.resumed) == ("answered", True)
    assert sorted(wrong.about) == ["KS-1", "KS-1", "KS-2"]


def test_open_turns_with_and_without_the_filter_are_two(opened: Opened, llm: TalkingLLM) -> None:
    options, limits = ConversationOptions(), TurnLimits()
    prints = {
        turn_fingerprint(each, limits)
        for each in (
            options,
            replace(options, prompts_thinking={"reader": {"system": "Think."}}),
            replace(options, prompts_no_thinking={"reader": {"system": "Think."}}),
        )
    }
    assert len(prints) == 3
    talk = opened().conversation("s")
    llm.broken["read"] = DOWN
    talk.ask(CLASS)
    llm.broken.clear()
    assert not talk.ask(CLASS, insert_block=True).resumed


@pytest.mark.parametrize(("thinking", "system"), [(True, "Think"), (False, "Be quick"), (None, "Answer")])
def test_thinking_chooses_the_prompts(opened: Opened, thinking: bool | None, system: str) -> None:
    llm = FakeLLM(lambda _: "Delta")
    options = ConversationOptions(
        prompts_thinking={"reader": {"system": "Think well."}},
        prompts_no_thinking={"reader": {"system": "Be quick."}},
    )
    result = opened(llm, options=options).conversation("s").ask(CLASS, thinking=thinking)
    assert result.answer == "Delta"
    assert llm.calls[-1][0][1].startswith(system)


def test_prompts_that_are_not_usable_are_reported_at_once(opened: Opened) -> None:
    with pytest.raises(SettingsError, match="no prompt 'raeder'"):
        opened(options=ConversationOptions(prompts_thinking={"raeder": {"system": "x"}}))


def test_a_limit_that_leaves_no_call_for_the_filter_is_told(
    opened: Opened, llm: TalkingLLM, retriever: TableRetriever
) -> None:
    result = opened(**WITH, retriever=retriever).conversation("s").ask(CLASS, max_llm_calls=2)
    assert llm.asked() == ["block", "read"]
    assert result.tree is not None
    assert result.tree.spent_limits == {"calls"}
