"""The figures of conversations, from hand-made rows, and the section that shows them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from judgetree.evaluation.datasets.questions import DialogueTurn, EvalQuestion
from judgetree.evaluation.reports.conversation import ALL, FOLLOW_UPS, conversation_frame, conversation_section
from judgetree.evaluation.reports.frames import question_frame, system_frame
from judgetree.evaluation.reports.turn_columns import NEEDED_METRICS
from judgetree.evaluation.rows.store import RunRow
from judgetree.evaluation.rows.turn_facts import ReusedChunk, TurnFacts
from judgetree.evaluation.tables.markdown import sections_markdown
from judgetree.modules.calls.prices import ModelUsage
from tests.eval.runs.test_spending import ROW

FIRST = EvalQuestion(
    id="d-1",
    question="What is throat cancer?",
    answers=("a cancer",),
    supporting=("a",),
    turn=DialogueTurn(dialogue_id="d", number=1, rewrite="What is throat cancer?"),
)
SECOND = EvalQuestion(
    id="d-2",
    question="Is it treatable?",
    answers=("yes",),
    supporting=("a", "b"),
    turn=DialogueTurn(
        dialogue_id="d",
        number=2,
        parent="d-1",
        history=((FIRST.question, "a cancer"),),
        rewrite="Is throat cancer treatable?",
        topic_switch=False,
    ),
)
KEPT = (ReusedChunk(key="a", chunk_id="1"),)


def row(question: EvalQuestion, prediction: str, **told: object) -> RunRow:
    assert question.turn is not None
    facts: dict[str, object] = {
        "dialogue_id": "d",
        "number": question.turn.number,
        "conversation": "s",
        "path_length": question.turn.number,
        "standalone_query": question.turn.rewrite,
        "answered_from": "search",
        "own": ModelUsage(model="m", kind="chat", calls=2, prompt_tokens=90, completion_tokens=10),
    }
    return replace(
        ROW,
        system="naive",
        question_id=question.id,
        question=question.question,
        prediction=prediction,
        tree=None,
        paid=(ModelUsage(model="m", kind="chat", calls=3, prompt_tokens=100, cached_calls=1, cached_prompt_tokens=50),),
        conversation=TurnFacts(**{**facts, **told}),  # type: ignore[arg-type]
    )


def frame_of(*rows: RunRow) -> pd.DataFrame:
    return question_frame(rows, (FIRST, SECOND))


def section_lines(frame: pd.DataFrame, *, history: str = "own") -> list[str]:
    """The lines of Markdown of the section "Conversation" that are not empty."""
    section = conversation_section(frame, ks=(3,), history=history)
    assert section is not None
    return [line for line in sections_markdown([section]).splitlines() if line]


def column(name: str, *rows: RunRow) -> list[object]:
    frame = frame_of(*rows)
    return list(frame[name].astype(object).where(frame[name].notna(), None))


def test_rewrites_are_compared_with_the_human_s() -> None:
    rows = row(FIRST, "x"), row(SECOND, "x", standalone_query="Is cancer treatable?")
    assert column("rewrite_rouge1_recall", *rows) == [1.0, 0.75]
    assert column("rewrite_exact", *rows) == [1.0, 0.0]
    means = conversation_frame(frame_of(*rows), ks=(3,)).set_index(["metric", "part"])["mean"]
    assert (means["rewrite_exact", ALL], means["rewrite_exact", FOLLOW_UPS]) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("prediction", "told", "reuses", "wrongly"),
    [
        ("yes", {}, 0.0, None),
        ("yes", {"answered_from": "history", "reused": KEPT}, 1.0, 0.0),
        ("no", {"answered_from": "history", "reused": KEPT}, 1.0, 1.0),
        ("no", {"reused": KEPT}, 1.0, 0.0),
    ],
)
def test_reuse_is_of_follow_ups(prediction: str, told: dict[str, object], reuses: float, wrongly: float | None) -> None:
    rows = row(FIRST, "x"), row(SECOND, prediction, **told)
    assert column("reuses", *rows) == [None, reuses]
    assert column("reuses_wrongly", *rows) == [None, wrongly]


def test_needed_turns_are_compared_with_gold_where_both_say() -> None:
    assert SECOND.turn is not None
    gold = replace(SECOND, turn=replace(SECOND.turn, relevant_turns=(1,)))

    def scores(question: EvalQuestion, needed: tuple[int, ...] | None) -> list[object]:
        frame = question_frame(
            [row(FIRST, "x", needed_turns=()), row(question, "yes", needed_turns=needed)], (FIRST, question)
        )
        return [None if pd.isna(value) else value for value in frame[list(NEEDED_METRICS)].to_numpy().ravel()]

    assert scores(gold, (1,)) == [None, None, None, 1.0, 1.0, 1.0]
    assert scores(gold, ()) == [None, None, None, None, 0.0, 0.0]
    assert scores(gold, None) == scores(SECOND, (1,)) == [None] * 6
    lines = section_lines(conversation_frame(question_frame([row(gold, "yes", needed_turns=(1,))], (gold,)), ks=(3,)))
    perfect = "100.0 (20.7 to 100.0)"
    assert "| earlier turns that follow-ups need | n | precision | recall | F1 |" in lines
    assert f"| naive | 1 | {perfect} | {perfect} | {perfect} |" in lines


def test_forms_are_scored_by_what_they_found() -> None:
    frame = frame_of(
        row(SECOND, "yes", retrieved={"raw": (), "rewrite": ("a", "x", "b"), "human": ("a", "y", "z", "b")})
    )
    (scored,) = frame.to_dict(orient="records")
    assert [scored[f"{form}_recall@3"] for form in ("raw", "rewrite", "human")] == [0.0, 1.0, 0.5]
    assert (scored["human_all@3"], scored["human_all@10"]) == (0.0, 1.0)
    assert pd.isna(scored["joined_recall@3"])


def test_calls_and_tokens_are_those_of_search_and_conversation_paid_or_not() -> None:
    (scored,) = frame_of(row(SECOND, "yes")).to_dict(orient="records")
    assert (scored["turn_calls"], scored["turn_tokens"]) == (4, 150)
    assert (scored["llm_calls"], scored["own_calls"], scored["own_tokens"]) == (4, 2, 100)


def test_retrieval_is_missing_without_a_search() -> None:
    rows = row(FIRST, "x", answered_from="history"), replace(row(SECOND, ""), status="failed")
    frame = frame_of(*rows)
    assert list(frame["recall@3"].isna()) == [True, False]
    assert system_frame(frame, ["recall@3"])["n"].tolist() == [1]


def test_failed_turn_is_in_no_figure_of_the_conversation() -> None:
    failed = replace(row(SECOND, ""), status="failed", conversation=None)
    unasked = replace(row(SECOND, "", answered_from=None, standalone_query=""), status="failed", repeat=1)
    frame = conversation_frame(frame_of(row(FIRST, "x"), failed, unasked), ks=(3,))
    assert set(frame["n"]) == {1}
    assert "reuses" not in set(frame["metric"])


def test_section_shows_what_there_is() -> None:
    rows = row(FIRST, "x", retrieved={"raw": ("a",)}), row(SECOND, "no", answered_from="history", reused=KEPT)
    frame = conversation_frame(frame_of(*rows), ks=(3,))
    lines = section_lines(frame)
    assert lines[0] == "# Conversation"
    right, half = "100.0 (20.7 to 100.0)", "50.0 (5.5 to 94.5)"
    follow_up = "100.0 (20.7 to 100.0; n 1)"
    assert f"| naive | as asked | 1 | {right} |  | {right} |  |" in lines
    assert f"| naive | 2 | {follow_up} | {follow_up} | {half} | {half} | 4.0 | 150.0 |" in lines, "one dialogue"
    assert "the data set's turns" in section_lines(frame, history="given")[1]


def test_run_without_dialogues_has_no_section() -> None:
    alone = EvalQuestion(id="q", question="Who?", answers=("Ada",))
    frame = conversation_frame(question_frame([replace(ROW, question_id="q")], [alone]), ks=(3,))
    assert (len(frame), conversation_section(frame, ks=(3,), history="own")) == (0, None)
