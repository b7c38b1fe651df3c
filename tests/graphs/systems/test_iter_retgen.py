"""Iter-RetGen: a draft a round, question and draft the next query; the reader sees the last round's chunks."""

from __future__ import annotations

from judgetree.graphs.systems.iter_retgen import build_iter_retgen
from judgetree.graphs.threads.state import RagState
from judgetree.modules.reader.multistep_prompts import DRAFT_SYSTEM, LONGEST_QUERY, draft_messages
from judgetree.modules.reader.prompts import reader_messages
from tests.graphs.fakes import FakeLLM
from tests.graphs.systems.test_rounds import context_of
from tests.graphs.two_steps import ROOT, SUB

FIRST_ROUND = "[1] a.md\nKS-1 is class Delta.\n\n[2] n.md\nnoise"
SECOND_ROUND = "[1] b.md\nDelta needs Vellin.\n\n[2] a.md\nKS-1 is class Delta."


def run(*drafts: str, depth: int = 3, calls: int = 60) -> tuple[RagState, FakeLLM]:
    said = iter(drafts)
    reader = FakeLLM(lambda messages: next(said) if messages[0][1] == DRAFT_SYSTEM else "Vellin")
    return build_iter_retgen(context=context_of(reader, depth=depth, calls=calls)).invoke(ROOT), reader


def test_question_and_draft_are_the_next_query() -> None:
    final, _ = run(f"\n {SUB}\n", "Vellin.", depth=2)
    assert [step["query"] for step in final["steps"]] == [ROOT, f"{ROOT} {SUB}", f"{ROOT} Vellin."]


def test_a_draft_rests_on_the_chunks_of_its_round_alone() -> None:
    _, reader = run(SUB, "Vellin.", depth=2)
    assert reader.calls[:2] == [draft_messages(ROOT, FIRST_ROUND), draft_messages(ROOT, SECOND_ROUND)]


def test_the_reader_answers_from_the_last_round_in_its_order() -> None:
    final, reader = run(SUB, depth=1)
    assert final["evidence"] == SECOND_ROUND
    assert reader.calls[-1] == reader_messages(ROOT, SECOND_ROUND)


def test_a_spent_budget_leaves_the_chunks_of_the_round_that_was_reached() -> None:
    final, _ = run(SUB, depth=5, calls=2)
    assert final["evidence"] == SECOND_ROUND


def test_a_draft_without_end_does_not_become_a_query_without_end() -> None:
    final, _ = run("oil " * 10_000, depth=1)
    assert len(final["steps"][1]["query"]) <= len(ROOT) + 1 + LONGEST_QUERY
