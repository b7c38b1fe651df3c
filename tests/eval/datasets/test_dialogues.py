from pathlib import Path

import pytest

from judgetree.evaluation.datasets.dialogue_turns import in_dialogue_order, turn_of
from judgetree.evaluation.datasets.standards import load_dialogue_questions
from tests.eval.dataset_files import write_lines

REPO = Path(__file__).parents[3]


def turn(number: int, parent: int | None, **changes: object) -> dict[str, object]:
    fact = {"source": "a.md", "quote": "q", "question": "q?", "answer": "a"}
    asked = {"turn": number, "parent": parent, "question": f"Q{number}?", "standalone": f"Whole {number}?"}
    return {**asked, "answer": f"A{number}", "aliases": ["a"], "type": "single", "supporting": [fact], **changes}


def dialogue(name: str, *turns: dict[str, object]) -> dict[str, object]:
    return {"id": name, "lang": "zh", "kind": "branches", "turns": [turn(1, None, question="Whole 1?"), *turns]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "standards").mkdir()
    (tmp_path / "standards" / "a.md").write_text("text")
    return tmp_path


def test_a_turn_has_the_path_that_leads_to_it(folder: Path) -> None:
    unanswerable = turn(2, 1, type="unanswerable", answer="none", supporting=[])
    switch = turn(4, 2, question="Whole 4?", topic_switch=True)
    turns = (unanswerable, turn(3, 1, relevant_turns=[1], from_history=True), switch)
    dataset = load_dialogue_questions(write_lines(folder, dialogue("d", *turns)))
    _, second, third, fourth = dataset.questions
    assert (third.id, third.question, third.answers, third.lang) == ("d-turn-3", "Q3?", ("A3", "a"), "zh")
    assert (third.supporting, third.hops, dataset.folder, dataset.key_field) == (
        ("a.md",),
        1,
        folder / "standards",
        "source",
    )
    branched = turn_of(third)
    assert (branched.dialogue_id, branched.number, branched.parent) == ("d", 3, "d-turn-1")
    assert branched.history == (("Whole 1?", "A1"),)
    assert (branched.rewrite, branched.from_history, branched.topic_switch) == ("Whole 3?", True, False)
    assert (second.answers, second.answers_known, second.type) == ((), True, "unanswerable")
    assert turn_of(fourth).history == (("Whole 1?", "A1"), ("Q2?", ""))
    assert turn_of(fourth).topic_switch


def test_a_dialogue_with_a_fault_or_an_unknown_source_is_malformed(folder: Path) -> None:
    lost = turn(2, 1, supporting=[{"source": "b.md", "quote": "q", "question": "q?", "answer": "a"}])
    rows = (dialogue("d", lost), dialogue("e", turn(2, 2)), dialogue("f", turn(2, 1)))
    dataset = load_dialogue_questions(write_lines(folder, *rows))
    assert [question.id for question in dataset.questions] == ["f-turn-1", "f-turn-2"]
    assert [number for number, _ in dataset.malformed] == [1, 2]
    assert "turn 2: supporting: there is no file 'b.md'" in dataset.malformed[0][1]


def test_the_set_of_the_repository_is_read_without_a_fault() -> None:
    dataset = load_dialogue_questions(REPO / "data" / "standards_dialogues.jsonl")
    ids = {question.id for question in dataset.questions}
    assert dataset.malformed == ()
    assert len(ids) == len(dataset.questions)
    assert in_dialogue_order(dataset.questions) == dataset.questions
    assert all(turn_of(question).parent in {"", *ids} for question in dataset.questions)
    assert all(turn_of(question).rewrite for question in dataset.questions)
