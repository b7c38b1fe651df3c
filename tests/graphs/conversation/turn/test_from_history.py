"""When earlier turns may answer, and how much of their evidence a turn looks at."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from langchain_core.documents import Document

from judgetree.graphs.config.conversing import FromHistory
from judgetree.graphs.conversation.turn.context import ConversationOptions, TurnLimits
from judgetree.graphs.conversations import Conversations
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.config.answer_form import AnswerForm
from judgetree.modules.judge.contract import Verdict
from judgetree.modules.reader.prompts import REFUSAL
from tests.graphs.conversation.talk import DOWN, KINDS, OIL, TalkingLLM, after_first_turn, saved
from tests.graphs.fakes import chunk

Open = Callable[..., Conversations]
TURNS = 25
CAP = TurnLimits(max_evidence_tokens=600, max_kept_chunks=4, max_tokens=2_000)


def led(when: FromHistory) -> ConversationOptions:
    return ConversationOptions(answer_from_history=when)


class YesMan(TalkingLLM):
    """Says of every question that earlier turns answer it."""

    answer = "certainly"
    useful: tuple[int, ...] = (1,)

    def _select(self, query: str, text: str) -> str:
        return json.dumps({"turns": [1]})

    def _assess(self, query: str, text: str) -> str:
        return json.dumps({"question": OIL, "useful": list(self.useful), "answer": self.answer})


NO_ANSWERS = ["", REFUSAL, "我无法回答这个问题。"]
FOUND = ("Vellin", "search")


@pytest.mark.parametrize(
    ("when", "proposed", "useful", "given", "calls"),
    [
        ("assessed", "certainly", (1,), FOUND, ["select", "assess", "judge", "read"]),
        ("assessed", "certainly", (), FOUND, ["select", "assess", "read"]),
        ("trust", "certainly", (1,), ("certainly", "history"), ["select", "assess"]),
        *[("assessed", nothing, (1,), FOUND, ["select", "assess", "read"]) for nothing in NO_ANSWERS],
        *[("trust", nothing, (1,), FOUND, ["select", "assess", "read"]) for nothing in NO_ANSWERS],
    ],
)
def test_a_proposed_answer_needs_evidence_and_the_judge_or_trust(
    opened: Open, when: FromHistory, proposed: str, useful: tuple[int, ...], given: tuple[str, str], calls: list[str]
) -> None:
    llm = YesMan()
    llm.answer, llm.useful = proposed, useful
    talk = after_first_turn(opened(llm, options=led(when)), llm)
    turn = saved(talk.ask("And its oil?"))
    assert (turn["answer"], turn["answered_from"]) == given
    assert llm.asked() == calls


@pytest.mark.parametrize("form", [AnswerForm(max_tokens=9), AnswerForm(seed=1)])
def test_an_answer_in_a_form_is_the_reader_s_and_another_turn(opened: Open, form: AnswerForm) -> None:
    llm = YesMan()
    talk = after_first_turn(opened(llm, options=led("trust")), llm)
    turn = saved(talk.ask("And its oil?", answer_form=form))
    assert (turn["answer"], turn["answered_from"]) == (FOUND if form.max_tokens else ("certainly", "history"))
    assert turn["overrides"] == {"answer_form": str(form)}


class Odd:
    """A judge of one's own whose score does not exist."""

    journaled: bool | None = None

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "odd"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        self.journaled = meter.calls is not None
        return Verdict(status="judged", score="2")  # type: ignore[arg-type]


def test_own_judge_confirms_under_the_journal_with_a_valid_score(opened: Open) -> None:
    judge = Odd()
    talk = after_first_turn(opened(YesMan(), options=led("assessed"), judge=judge))
    assert saved(talk.ask("And its oil?"))["answered_from"] == "search"
    assert judge.journaled


def test_never_condenses_and_searches_every_follow_up(opened: Open) -> None:
    llm = TalkingLLM()
    talk = after_first_turn(opened(llm, options=led("never")), llm)
    turn = saved(talk.ask("Which colour has it?"))
    assert (turn["answered_from"], turn["standalone_query"]) == ("search", "Which colour has KS-1?")
    assert llm.asked() == ["condense", "read"]
    assert saved(talk.ask("And its oil?"))["answer"] == "Vellin"


def test_an_open_turn_that_was_led_otherwise_does_not_go_on(opened: Open) -> None:
    llm = TalkingLLM()
    talk = after_first_turn(opened(llm, options=led("never")))
    llm.broken["read"] = DOWN
    assert talk.ask("And its oil?", request_id="r").status == "failed"
    del llm.broken["read"]
    llm.asked()
    again = opened(llm, options=led("assessed")).conversation("s").ask("And its oil?", request_id="r")
    assert (again.resumed, again.answer) == (False, "Vellin")
    assert llm.asked() == ["select", "assess", "read"]


class LeaningLLM(TalkingLLM):
    """Every question leans on all turns that are shown, and finds all of their passages useful."""

    def _select(self, query: str, text: str) -> str:
        return json.dumps({"turns": [int(number) for number in re.findall(r"^Turn (\d+)$", text, re.MULTILINE)]})

    def _assess(self, query: str, text: str) -> str:
        useful = [int(number) for number in re.findall(r"^\[(\d+)\] ", text, re.MULTILINE)]
        return json.dumps({"question": query, "useful": useful, "answer": ""})

    def _read(self, query: str, text: str) -> str:
        return "a short answer"


class NewPassages:
    """Finds three passages that no other question finds."""

    def fingerprint(self) -> dict[str, str]:
        return {"collection": "new"}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        return [(chunk(f"{query} {n}", f"{query} {n} {'says this. ' * 40}"), 1 - n / 10) for n in range(3)]


def test_kept_evidence_and_prompts_stop_growing(opened: Open) -> None:
    llm = LeaningLLM()
    talk = opened(llm, retriever=NewPassages(), limits=CAP).conversation("s")
    sizes: list[int] = []
    for number in range(TURNS):
        llm.calls.clear()
        turn = saved(talk.ask(f"Question {number}?"))
        assert len(turn["chunks"]) <= 3 + CAP.max_kept_chunks
        sizes.append(max(message_tokens(m) for m in llm.calls if KINDS[m[0][1]] != "digest"))
    assert max(sizes) <= CAP.max_tokens
    assert max(sizes[TURNS // 2 :]) <= 1.02 * max(sizes[: TURNS // 2]), sizes
