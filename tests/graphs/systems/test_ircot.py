"""IRCoT: a sentence a round, each of them the next query; the reader sees the paragraphs of all rounds."""

from __future__ import annotations

from judgetree.graphs.systems.ircot import build_ircot
from judgetree.graphs.threads.state import RagState
from judgetree.modules.reader.multistep_prompts import FINAL_THOUGHT, THOUGHT_SYSTEM, thought_messages
from judgetree.modules.reader.prompts import reader_messages
from tests.graphs.fakes import FakeLLM
from tests.graphs.systems.test_rounds import context_of
from tests.graphs.two_steps import ROOT

FIRST, SECOND = "KS-1 is class Delta.", "Which oil does class Delta need?"


def run(*thoughts: str) -> tuple[RagState, FakeLLM]:
    said = iter(thoughts)
    reader = FakeLLM(lambda messages: next(said) if messages[0][1] == THOUGHT_SYSTEM else "Vellin")
    return build_ircot(context=context_of(reader)).invoke(ROOT), reader


def test_each_sentence_is_the_next_query_until_the_answer() -> None:
    final, _ = run(f"{FIRST} It needs much more.", SECOND, f"{FINAL_THOUGHT} Vellin.")
    assert [step["query"] for step in final["steps"]] == [ROOT, FIRST, SECOND]
    assert [step["text"] for step in final["steps"]] == [FIRST, SECOND, f"{FINAL_THOUGHT} Vellin."]


def test_each_sentence_rests_on_all_paragraphs_and_all_sentences_so_far() -> None:
    _, reader = run(FIRST, SECOND, f"{FINAL_THOUGHT} Vellin.")
    one, two, three, _ = reader.calls
    passages = "[1] a.md\nKS-1 is class Delta.\n\n[2] n.md\nnoise"
    assert one == thought_messages(ROOT, passages, [])
    assert two == thought_messages(ROOT, passages, [FIRST])
    assert three == thought_messages(ROOT, f"{passages}\n\n[3] b.md\nDelta needs Vellin.", [FIRST, SECOND])


def test_the_reader_sees_the_paragraphs_of_all_rounds() -> None:
    final, reader = run(SECOND, f"{FINAL_THOUGHT} something else.")
    assert reader.calls[-1] == reader_messages(ROOT, final["evidence"])
    assert final["evidence"] == "[1] a.md\nKS-1 is class Delta.\n\n[2] n.md\nnoise\n\n[3] b.md\nDelta needs Vellin."
    assert final["answer"] == "Vellin"
