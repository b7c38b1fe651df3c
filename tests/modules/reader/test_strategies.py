"""Reading at once or passage by passage: which calls are made, what they are shown, and what a spent budget leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.config.answer_form import USUAL_FORM, AnswerForm
from judgetree.modules.config.reading import AnswerStrategy
from judgetree.modules.errors import BudgetSpent, ModelCallError
from judgetree.modules.reader.prompts import (
    COMBINE_SYSTEM,
    FINISH_SYSTEM,
    NO_CONFIDENCE,
    NOTE_SYSTEM,
    READER_SYSTEM,
    REFINE_SYSTEM,
    REFUSAL,
    SCORED_SYSTEM,
    STRATEGY_VERSIONS,
    combine_messages,
    finish_messages,
    note_messages,
    parse_note,
    parse_scored,
    reader_messages,
    refine_messages,
    scored_messages,
)
from judgetree.modules.reader.refusals import is_refusal
from judgetree.modules.reader.strategies import ReaderAnswer, read_evidence
from tests.graphs.fakes import FakeLLM
from tests.modules.model_endpoints import Snapshots

QUERY = "Which oil?"
PASSAGES = ("a.md\nalpha", "b.md\nbeta", "c.md\ngamma")
CONTEXT = "\n\n".join(f"[{number}] {passage}" for number, passage in enumerate(PASSAGES, start=1))
BY_PASSAGE: tuple[AnswerStrategy, ...] = ("map_reduce", "refine", "map_rerank")
THREAD = "root"


def model(alone: Mapping[str, str], *, whole: str = "whole") -> FakeLLM:
    """Says of a passage alone what the table has for a word in it, else the refusal; ``whole`` to all other prompts."""

    def reply(messages: Sequence[Message]) -> str:
        (_, system), (_, user) = messages
        if system not in (NOTE_SYSTEM, REFINE_SYSTEM, SCORED_SYSTEM):
            return whole
        passage = user.rpartition("Passage:\n")[2]
        return next((said for word, said in alone.items() if word in passage), REFUSAL)

    return FakeLLM(reply)


@dataclass
class Read:
    """What came of one reading."""

    answer: ReaderAnswer
    llm: FakeLLM
    meter: CallMeter
    grown: list[str] = field(default_factory=list)

    @property
    def systems(self) -> list[str]:
        return [call[0][1] for call in self.llm.calls]


def read(
    strategy: AnswerStrategy,
    llm: FakeLLM,
    passages: Sequence[str] = PASSAGES,
    *,
    free_calls: int | None = None,
    form: AnswerForm = USUAL_FORM,
) -> Read:
    """``free_calls`` is what the budget has beside the held call; None for no budget at all."""
    budget = None
    if free_calls is not None:
        budget = TreeBudget(limit=free_calls + 1)
        assert budget.reserve_answer(THREAD)
    meter, grown = CallMeter(node="generate", budget=budget, held_by=THREAD), Snapshots()
    context = CONTEXT if passages is PASSAGES else "\n\n".join(passages)
    asked = read_evidence(strategy, llm, QUERY, context, passages, meter=meter, on_text=grown, form=form)
    answer = asyncio.run(asked)
    return Read(answer=answer, llm=llm, meter=meter, grown=grown)


def calls_about(messages: Callable[[str, str], list[Message]], passages: Sequence[str] = PASSAGES) -> list[object]:
    return [messages(QUERY, passage) for passage in passages]


# --- with calls enough ---


def test_stuff_reads_all_at_once() -> None:
    done = read("stuff", model({}))
    assert (done.answer, done.llm.calls) == (ReaderAnswer(text="whole"), [reader_messages(QUERY, CONTEXT)])


@pytest.mark.parametrize("strategy", get_args(AnswerStrategy))
@pytest.mark.parametrize("passages", [(), ("a.md\nalpha",)])
def test_fewer_than_two_passages_are_read_at_once(strategy: AnswerStrategy, passages: tuple[str, ...]) -> None:
    done = read(strategy, model({}), passages, free_calls=0)
    assert (done.answer, done.systems) == (ReaderAnswer(text="whole"), [READER_SYSTEM])


def test_map_reduce_answers_from_the_notes_in_order_without_refusals() -> None:
    done = read("map_reduce", model({"alpha": "Fact: A holds.", "gamma": "Answer: Vellin"}))
    combined = combine_messages(QUERY, ["[1] Fact: A holds.", "[3] Answer: Vellin"])
    assert done.llm.calls == [*calls_about(note_messages), combined]
    assert (done.answer, len(done.meter.records)) == (ReaderAnswer(text="whole"), 4)


@pytest.mark.parametrize(
    ("notes", "answer", "calls"),
    [({}, REFUSAL, 3), ({"beta": "Answer: Vellin"}, "Vellin", 3), ({"beta": "Fact: B holds."}, "whole", 4)],
)
def test_map_reduce_makes_no_needless_last_call(notes: dict[str, str], answer: str, calls: int) -> None:
    done = read("map_reduce", model(notes))
    assert (done.answer, len(done.llm.calls)) == (ReaderAnswer(text=answer), calls)


@pytest.mark.parametrize("strategy", BY_PASSAGE)
@pytest.mark.parametrize("free_calls", [None, 3, 1, 0])
def test_only_the_call_that_writes_the_answer_has_its_form(strategy: AnswerStrategy, free_calls: int | None) -> None:
    said = model({"beta": "Answer: Vellin\nConfidence: 90"})
    done = read(strategy, said, free_calls=free_calls, form=AnswerForm(instructions="Shout.", max_tokens=7))
    assert ["Shout." in system for system in done.systems] == [False] * (len(done.systems) - 1) + [True]
    assert [options.max_tokens for options in done.llm.options] == [None] * (len(done.systems) - 1) + [7]
    assert done.answer.text == done.grown[-1] == "whole"
    assert read(strategy, model({}), form=AnswerForm(max_tokens=7)).answer.text in (REFUSAL, "whole")


def test_refine_takes_what_is_known_from_passage_to_passage() -> None:
    done = read("refine", model({"alpha": "A holds.", "beta": "A and B hold."}))
    assert done.llm.calls == [
        refine_messages(QUERY, "", PASSAGES[0]),
        refine_messages(QUERY, "A holds.", PASSAGES[1]),
        finish_messages(QUERY, "A and B hold.", f"[3] {PASSAGES[2]}"),
    ]
    assert done.answer == ReaderAnswer(text="whole")


def test_refine_forgets_nothing_over_a_passage_that_does_not_help() -> None:
    done = read("refine", model({"alpha": "A holds."}))
    assert done.llm.calls[-1] == finish_messages(QUERY, "A holds.", f"[3] {PASSAGES[2]}")
    nothing_known = read("refine", model({}))
    assert nothing_known.llm.calls[-1] == reader_messages(QUERY, f"[3] {PASSAGES[2]}")


@pytest.mark.parametrize(
    ("scored", "winner"),
    [
        ({"alpha": ("One", "60"), "beta": ("Two", "90"), "gamma": ("Three", "70")}, "Two"),
        ({"alpha": ("One", "70"), "beta": ("Two", "90"), "gamma": ("Three", "90")}, "Two"),
        ({"alpha": (REFUSAL, "100"), "gamma": ("Three", "0")}, "Three"),
        ({"alpha": ("One", "surely"), "gamma": ("Three", "0")}, "Three"),
        ({"alpha": ("One", "surely"), "beta": (REFUSAL, "90")}, "One"),
        ({"alpha": ("", "90")}, REFUSAL),
        ({}, REFUSAL),
    ],
)
def test_map_rerank_takes_the_surest_answer(scored: dict[str, tuple[str, str]], winner: str) -> None:
    said = {word: f"Answer: {answer}\nConfidence: {sure}" for word, (answer, sure) in scored.items()}
    done = read("map_rerank", model(said))
    assert (done.answer, done.llm.calls) == (ReaderAnswer(text=winner), calls_about(scored_messages))


@pytest.mark.parametrize("strategy", ["map_reduce", "map_rerank"])
def test_passages_are_read_side_by_side(strategy: AnswerStrategy) -> None:
    class Meeting(FakeLLM):
        """Answers about a passage only once all of them have been asked about."""

        async def complete(self, messages: Sequence[Message], **options: object):  # type: ignore[no-untyped-def,override]
            if messages[0][1] in (NOTE_SYSTEM, SCORED_SYSTEM):
                async with asyncio.timeout(60):
                    await barrier.wait()
            return await super().complete(messages, **options)  # type: ignore[arg-type]

    barrier = asyncio.Barrier(len(PASSAGES))
    assert read(strategy, Meeting(lambda messages: "Answer: Vellin")).answer.text in ("Answer: Vellin", "Vellin")


@pytest.mark.parametrize(
    ("strategy", "alone", "grown"),
    [
        ("stuff", {}, ["w", "wh", "who", "whol", "whole"]),
        ("map_reduce", {"alpha": "Fact: A."}, ["w", "wh", "who", "whol", "whole"]),
        ("map_reduce", {"alpha": "Answer: Vellin"}, ["Vellin"]),
        ("refine", {"alpha": "A."}, ["w", "wh", "who", "whol", "whole"]),
        ("map_rerank", {"alpha": "Answer: Vellin\nConfidence: 9"}, ["Vellin"]),
    ],
)
def test_only_the_answer_is_seen_growing(strategy: AnswerStrategy, alone: dict[str, str], grown: list[str]) -> None:
    assert read(strategy, model(alone)).grown == grown


# --- when calls fail, or are spent ---


@pytest.mark.parametrize(("strategy", "asked"), [("map_reduce", 3), ("refine", 1), ("map_rerank", 3)])
def test_a_call_that_fails_fails_the_reading_after_the_others(strategy: AnswerStrategy, asked: int) -> None:
    class Failing(FakeLLM):
        """Fails at once on the first passage; the others take longer."""

        async def complete(self, messages: Sequence[Message], **options: object):  # type: ignore[no-untyped-def,override]
            if "alpha" not in messages[1][1]:
                for _ in range(5):
                    await asyncio.sleep(0)
            return await super().complete(messages, **options)  # type: ignore[arg-type]

    def reply(messages: Sequence[Message]) -> str:
        if "alpha" in messages[1][1]:
            raise ModelCallError("the endpoint is down")
        return "Answer: Vellin"

    llm = Failing(reply)
    with pytest.raises(ModelCallError, match="is down"):
        read(strategy, llm)
    assert len(llm.calls) == asked


ALONE = {
    "map_reduce": {"alpha": "Fact: A holds.", "beta": "Fact: B holds.", "gamma": "Fact: C holds."},
    "refine": {"alpha": "A holds.", "beta": "A and B hold."},
    "map_rerank": {
        "alpha": "Answer: One\nConfidence: 50",
        "beta": "Answer: Two\nConfidence: 70",
        "gamma": "Answer: Three\nConfidence: 90",
    },
}
FACTS = ["[1] Fact: A holds.", "[2] Fact: B holds.", "[3] Fact: C holds."]
UNREAD = [f"[{number}] {passage}" for number, passage in enumerate(PASSAGES, start=1)]
AT_ONCE = reader_messages(QUERY, CONTEXT)


@pytest.mark.parametrize(
    ("strategy", "free_calls", "answer", "last_call"),
    [
        ("map_reduce", 0, "whole", AT_ONCE),
        ("map_reduce", 1, "whole", combine_messages(QUERY, [*FACTS[:1], *UNREAD[1:]])),
        ("map_reduce", 2, "whole", combine_messages(QUERY, [*FACTS[:2], *UNREAD[2:]])),
        ("map_reduce", 3, "whole", combine_messages(QUERY, FACTS)),
        ("refine", 0, "whole", AT_ONCE),
        ("refine", 1, "whole", finish_messages(QUERY, "A holds.", "\n\n".join(UNREAD[1:]))),
        ("refine", 2, "whole", finish_messages(QUERY, "A and B hold.", UNREAD[2])),
        ("map_rerank", 0, "whole", AT_ONCE),
        ("map_rerank", 1, "One", scored_messages(QUERY, PASSAGES[0])),
        ("map_rerank", 2, "Three", scored_messages(QUERY, PASSAGES[2])),
        ("map_rerank", 3, "Three", scored_messages(QUERY, PASSAGES[2])),
    ],
)
def test_whatever_the_budget_leaves_there_is_an_answer(
    strategy: AnswerStrategy, free_calls: int, answer: str, last_call: list[Message]
) -> None:
    done = read(strategy, model(ALONE[strategy]), free_calls=free_calls)
    assert (done.answer.text, done.llm.calls[-1]) == (answer, last_call)
    needed = {"map_reduce": 3, "refine": 2, "map_rerank": 2}[strategy]
    assert ("budget" in done.answer.problem) == (free_calls < needed)
    assert done.answer.problem.startswith(f"{strategy} was cut short" if free_calls < needed else "")


def test_a_budget_that_ends_still_has_unread_passages_read() -> None:
    noted = read("map_reduce", model({}), free_calls=1)
    assert noted.llm.calls[-1] == combine_messages(QUERY, UNREAD[1:])
    scored = read("map_rerank", model({}), free_calls=1)
    assert (scored.answer.text, scored.llm.calls[-1]) == ("whole", AT_ONCE)


@given(
    strategy=st.sampled_from(BY_PASSAGE),
    number=st.integers(0, 6),
    free_calls=st.integers(0, 8),
    replies=st.lists(st.sampled_from(["Answer: x\nConfidence: 5", "Fact: y", REFUSAL, "odd"]), min_size=6, max_size=6),
)
def test_no_reading_needs_more_than_the_budget_or_fails_on_it(
    strategy: AnswerStrategy, number: int, free_calls: int, replies: list[str]
) -> None:
    passages = tuple(f"passage {place}" for place in range(number))
    done = read(strategy, model(dict(zip(passages, replies, strict=False))), passages, free_calls=free_calls)
    assert done.answer.text
    assert len(done.llm.calls) == len(done.meter.records) <= min(free_calls, number) + 1
    assert set(done.systems) <= {
        READER_SYSTEM,
        NOTE_SYSTEM,
        COMBINE_SYSTEM,
        REFINE_SYSTEM,
        FINISH_SYSTEM,
        SCORED_SYSTEM,
    }
    if free_calls >= number:
        assert done.answer.problem == ""


@pytest.mark.parametrize("strategy", get_args(AnswerStrategy))
def test_without_any_call_there_is_no_answer(strategy: AnswerStrategy) -> None:
    meter = CallMeter(node="generate", budget=TreeBudget(limit=0), held_by=THREAD)
    with pytest.raises(BudgetSpent):
        asyncio.run(read_evidence(strategy, model({}), QUERY, CONTEXT, PASSAGES, meter=meter))


# --- prompts ---

SHORT = "as short as possible: a name, a number with its unit, a date, yes or no; no explanation"


def squashed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("system", [READER_SYSTEM, NOTE_SYSTEM, COMBINE_SYSTEM, FINISH_SYSTEM, SCORED_SYSTEM])
def test_every_answer_is_as_short_as_the_readers(system: str) -> None:
    assert SHORT in squashed(system)


@pytest.mark.parametrize("system", [NOTE_SYSTEM, COMBINE_SYSTEM, REFINE_SYSTEM, FINISH_SYSTEM, SCORED_SYSTEM])
def test_every_prompt_names_the_refusal_and_the_language(system: str) -> None:
    assert REFUSAL in system
    assert "in the language of the question" in squashed(system)


def test_every_strategy_with_prompts_of_its_own_has_a_version_of_its_own() -> None:
    assert {"stuff", *STRATEGY_VERSIONS} == set(get_args(AnswerStrategy))
    assert len(set(STRATEGY_VERSIONS.values())) == len(STRATEGY_VERSIONS)


def test_braces_in_question_and_passage_stand_as_they_are() -> None:
    query, passage = "What is {x}?", "{y} \\1"
    for messages in (
        note_messages(query, passage),
        combine_messages(query, [passage]),
        refine_messages(query, passage, passage),
        finish_messages(query, passage, passage),
        scored_messages(query, passage),
    ):
        assert query in messages[1][1]
        assert passage in messages[1][1]


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        ("Answer: 40 mm", "Answer: 40 mm"),
        ("**Answer:** 40 mm", "Answer: 40 mm"),
        ("- answer：四十毫米", "Answer: 四十毫米"),
        ("答案：四十毫米", "Answer: 四十毫米"),
        ("Answer: -5 °C\nThe passage says so.", "Answer: -5 °C"),
        ("Answer:\n40 mm", "Answer: 40 mm"),
        ("Fact: Norm A names\nthe drum.", "Fact: Norm A names the drum."),
        ("Norm A names the drum.", "Fact: Norm A names the drum."),
        ("Let me see.\nFact: A.\nAnswer: 40 mm", "Answer: 40 mm"),
        (f"Answer: {REFUSAL}\nFact: A.", "Fact: A."),
        (f"Answer: {REFUSAL}\nIt is not said.", None),
        (f"{REFUSAL} The passage is about ladders.", None),
        ("我无法回答这个问题。", None),
        ("Fact:", None),
        ("", None),
    ],
)
def test_notes_are_read_tolerantly(reply: str, note: str | None) -> None:
    found = parse_note(reply)
    assert (None if found is None else str(found)) == note


@pytest.mark.parametrize(
    ("reply", "answer", "confidence"),
    [
        ("Answer: 40 mm\nConfidence: 85", "40 mm", 85),
        ("**Answer:** 40 mm\n**Confidence:** 85%", "40 mm", 85),
        ("Answer: 40 mm\nConfidence: 85/100", "40 mm", 85),
        ("Confidence: 85\nAnswer: 40 mm", "40 mm", 85),
        ("40 mm (confidence: 85)", "40 mm", 85),
        ("答案：四十毫米\n置信度：85。", "四十毫米", 85),
        ("Answer: 40 mm\nConfidence: 0.85", "40 mm", 85),
        ("Answer: 40 mm\nConfidence: 1.0", "40 mm", 100),
        ("Answer: 40 mm\nConfidence: 1", "40 mm", 1),
        ("Answer: 40 mm\nConfidence: 900", "40 mm", 100),
        ("Answer: 40 mm\nConfidence: high", "40 mm", NO_CONFIDENCE),
        ("40 mm", "40 mm", NO_CONFIDENCE),
        ("Confidence: 85", "", 85),
        ("", "", NO_CONFIDENCE),
    ],
)
def test_scored_answers_are_read_tolerantly(reply: str, answer: str, confidence: float) -> None:
    found = parse_scored(reply)
    assert (found.text, found.confidence) == (answer, confidence)


pieces = st.sampled_from(["Answer:", "Fact:", "Confidence:", "答案：", "\n", "**", "90", "0.5", "%", "x", REFUSAL, " "])


@given(st.lists(pieces).map("".join) | st.text())
@example(f"Confidence:{REFUSAL}\n{REFUSAL}Answer:\nConfidence:")
def test_no_reply_breaks_a_parser(reply: str) -> None:
    note = parse_note(reply)
    assert note is None or not is_refusal(note.text)
    assert parse_scored(reply).confidence == NO_CONFIDENCE or 0 <= parse_scored(reply).confidence <= 100
