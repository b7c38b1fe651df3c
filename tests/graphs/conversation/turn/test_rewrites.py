"""Rewrites that are wrong, huge or wrapped in chatter: what of them reaches the turn, the search and later turns."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgetree.graphs.conversation.turn.context import ConversationOptions, TurnLimits
from judgetree.graphs.conversations import Conversations
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions, Message
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.memory.prompts import UNDERSTOOD
from tests.cpu_time import cpu_time_below
from tests.graphs.conversation.talk import (
    ANSWERS,
    CLASS,
    KINDS,
    OIL,
    SCREW,
    TABLE,
    TalkingLLM,
    after_first_turn,
    open_conversations,
    saved,
)
from tests.graphs.fakes import TableRetriever

Open = Callable[..., Conversations]
HUGE = "Which oil? " * 100_000
CHAIN = ConversationOptions(answer_from_history="never")


class WholeReplies(TalkingLLM):
    """The talking model without streaming, so that a huge reply costs the script nothing."""

    async def complete(
        self, messages: Sequence[Message], *, meter: CallMeter, options: CallOptions = PLAIN_TEXT, **_: Any
    ) -> Completion:
        self.calls.append(list(messages))
        self.limits.append((KINDS[messages[0][1]], options.max_tokens))
        meter.record(kind="chat", model=self.model, started=time.perf_counter())
        return Completion(text=self._say(messages), thinking="", finish_reason="stop")

    def __init__(self) -> None:
        super().__init__()
        self.limits: list[tuple[str, int | None]] = []


@pytest.fixture
def llm() -> WholeReplies:
    return WholeReplies()


class ForgetfulLLM(TalkingLLM):
    """Rewrites "And its oil?" wrongly, as a question about KS-9; understands later ones by what its prompt shows."""

    def _select(self, query: str, text: str) -> str:
        return json.dumps({"turns": [1, 2] if query == "Does it need anything else?" else [1]})

    def _assess(self, query: str, text: str) -> str:
        said = SCREW if query == "And its oil?" else CLASS if "And its oil?" in text else SCREW
        return json.dumps({"question": said, "useful": [], "answer": ""})


def test_a_wrong_rewrite_does_not_bend_later_turns(tmp_path: Path) -> None:
    llm = ForgetfulLLM()
    retriever = TableRetriever(TABLE)
    with open_conversations(tmp_path, llm, retriever=retriever) as talks:
        talk = after_first_turn(talks)
        assert saved(talk.ask("And its oil?"))["standalone_query"] == SCREW, "the wrong rewrite"
        read = llm.calls[-1][1][1]
        assert f"Question: And its oil?\n{UNDERSTOOD}{SCREW}" in read, "the reader sees both"
        turn = saved(talk.ask("Does it need anything else?"))
    assert turn["standalone_query"] == CLASS, "what the user wrote tells what 'it' is"
    assert retriever.queries == [CLASS, SCREW, CLASS], "what is searched for is the rewrite"
    shown = [messages[1][1] for messages in llm.calls if KINDS[messages[0][1]] == "assess"][-1]
    assert f"Turn 2\nQ: And its oil?\n{UNDERSTOOD}{SCREW}\nA: M8" in shown


def test_chatter_around_a_rewrite_is_not_searched_for(opened: Open, llm: WholeReplies) -> None:
    talk = after_first_turn(opened(options=CHAIN))
    llm.broken["condense"] = f"Sure! Here is the rewritten question:\n\n“{OIL}”\n\nLet me know if you need more."
    turn = saved(talk.ask("And its oil?"))
    assert (turn["standalone_query"], turn["rewrite_problem"], turn["answer"]) == (OIL, "", ANSWERS[OIL])


@pytest.mark.parametrize("options", [ConversationOptions(), CHAIN], ids=["assessed", "never"])
def test_a_megabyte_for_a_rewrite_is_no_rewrite(opened: Open, llm: WholeReplies, options: ConversationOptions) -> None:
    talk = after_first_turn(opened(options=options))
    llm.broken["condense"] = HUGE
    llm.broken["assess"] = json.dumps({"question": HUGE[:150_000], "useful": [], "answer": ""})
    with cpu_time_below(2):
        turn = saved(talk.ask("And its oil?"))
    assert turn["standalone_query"] == turn["query"] == "And its oil?"
    assert turn["rewrite_problem"] == "it is longer than 256 tokens"
    assert len(json.dumps(talk.history())) < 5_000
    assert max(sum(len(text) for _, text in messages) for messages in llm.calls) < 5_000


def test_calls_for_rewrites_and_summaries_are_limited(opened: Open, llm: WholeReplies) -> None:
    limits = TurnLimits(max_recent_turns=1, max_rewrite_tokens=100, max_summary_tokens=50, max_thinking_tokens=7)
    options = ConversationOptions(answer_from_history="never", summary_memory=True)
    talk = opened(options=options, limits=limits).conversation("s")
    llm.broken["summary"] = "They spoke of KS-1. " * 20_000
    for query in (CLASS, OIL, SCREW, CLASS):
        talk.ask(query)
    assert {("condense", 107), ("summary", 57)} <= set(llm.limits)
    (summary,) = {turn["summary"] for turn in talk.history() if turn["summary"]}
    assert summary.startswith("They spoke of KS-1. They")
    assert summary.endswith("KS-1.")
    assert message_tokens([("user", summary)]) <= 54


@pytest.mark.parametrize("options", [ConversationOptions(), CHAIN], ids=["assessed", "never"])
def test_prompts_keep_to_their_budget(opened: Open, llm: WholeReplies, options: ConversationOptions) -> None:
    long, chinese = "It is as long as a book. " * 8_000, "压力容器的规定很长。" * 8_000
    llm.broken["read"] = chinese
    talk = opened(options=options, limits=TurnLimits(max_tokens=900)).conversation("s")
    history = [(f"{long}?", chinese), (chinese, long), ("short?", "yes"), (long, long)]
    talk.ask("And its oil?", chat_history=history)
    talk.ask(f"Which {long}?")
    talk.ask(CLASS)
    talk.ask("And its oil?")
    led = [messages for messages in llm.calls if KINDS[messages[0][1]] in ("select", "assess", "condense")]
    assert {KINDS[messages[0][1]] for messages in led} >= (
        {"select", "assess"} if options is not CHAIN else {"condense"}
    )
    assert max(map(message_tokens, led)) <= 900
    shown = led[0][1][1]
    assert "short?" in shown, "long turns do not crowd out short ones"
    assert "[…]" in shown
