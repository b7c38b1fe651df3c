from pathlib import Path
from typing import Any

import pytest

from judgetree.evaluation.datasets.standards_dialogues import load_dialogues, path_of, standalone_question
from judgetree.modules.errors import LoadingError
from tests.eval.dataset_files import write_lines

FACT = {"source": "en/a.md", "quote": "Norm A names drums.", "question": "What does Norm A name?", "answer": "drums"}
FIRST = {
    "turn": 1,
    "parent": None,
    "question": "What does Norm A name?",
    "standalone": "What does Norm A name?",
    "answer": "drums",
    "type": "single",
    "supporting": [FACT],
}
Turn = dict[str, Any]


def follow_up(number: int, parent: int, **changes: object) -> Turn:
    turn = {"turn": number, "parent": parent, "question": f"And {number}?", "standalone": f"What is drum {number}?"}
    return {**FIRST, **turn, "relevant_turns": [parent], **changes}


def dialogue(*turns: Turn, identity: str = "d1", kind: str = "plain") -> dict[str, object]:
    return {"id": identity, "lang": "en", "kind": kind, "turns": list(turns)}


def test_dialogues_come_back_typed_and_in_file_order(tmp_path: Path) -> None:
    second = follow_up(2, 1, from_history=True, aliases=["the drums"])
    file = write_lines(tmp_path, dialogue(FIRST, second, identity="b"), dialogue(FIRST, identity="a", kind="switch"))
    found = load_dialogues(file)
    assert [(row.id, row.kind) for row in found] == [("b", "plain"), ("a", "switch")]
    first, last = found[0].turns
    assert (first.is_follow_up, first.relevant_turns, first.from_history) == (False, (), False)
    assert (last.is_follow_up, last.relevant_turns, last.from_history) == (True, (1,), True)


def test_a_path_leaves_other_branches_out(tmp_path: Path) -> None:
    turns = FIRST, follow_up(2, 1), follow_up(3, 1), follow_up(4, 3)
    [row] = load_dialogues(write_lines(tmp_path, dialogue(*turns, kind="branches")))
    assert [turn.turn for turn in path_of(row, 4)] == [1, 3, 4]
    assert [turn.turn for turn in path_of(row, 1)] == [1]
    for unknown in (0, 5):
        with pytest.raises(ValueError, match=f"d1 has no turn {unknown}: give one from 1 to 4"):
            path_of(row, unknown)


def test_a_stand_alone_question_is_a_row_of_its_own(tmp_path: Path) -> None:
    [row] = load_dialogues(write_lines(tmp_path, dialogue(FIRST, follow_up(2, 1, aliases=["the drums"]))))
    question = standalone_question(row, 2)
    assert (question.id, question.lang, question.question) == ("d1-turn-2", "en", "What is drum 2?")
    assert (question.answer, question.aliases, question.type) == ("drums", ("the drums",), "single")
    assert question.supporting == row.turns[1].supporting


@pytest.mark.parametrize(
    ("turns", "fault"),
    [
        ([], "a dialogue needs at least one turn"),
        ([{**FIRST, "turn": 2}], "turn 1: turns count from 1, got number 2"),
        ([{**FIRST, "parent": 1}], "turn 1: the first turn has no parent, got 1"),
        ([FIRST, follow_up(2, 2)], "turn 2: its parent must be an earlier turn, got 2"),
        ([FIRST, follow_up(2, 0)], "turn 2: its parent must be an earlier turn, got 0"),
        ([FIRST, {**FIRST, "turn": 2}], "turn 2: its parent must be an earlier turn, got None"),
        ([{**FIRST, "topic_switch": True}], "turn 1: the first turn cannot switch the topic"),
        ([{**FIRST, "question": "And?"}], "turn 1: a first turn or a topic switch stands alone"),
        ([FIRST, follow_up(2, 1, topic_switch=True)], "turn 2: a first turn or a topic switch needs no other turn"),
        (
            [FIRST, follow_up(2, 1), follow_up(3, 1, relevant_turns=[1, 2, 3])],
            "turn 3: relevant turns must lie earlier on its path, among [1]; got [2, 3]",
        ),
        ([{**FIRST, "supporting": []}], "turns.0: type single needs 1 supporting facts, got 0"),
        ([{**FIRST, "parents": 1}], "turns.0.parents: Unexpected keyword argument"),
    ],
)
def test_a_malformed_dialogue_is_named_by_its_line_and_fault(tmp_path: Path, turns: list[Turn], fault: str) -> None:
    file = write_lines(tmp_path, dialogue(FIRST, identity="good"), dialogue(*turns))
    with pytest.raises(LoadingError) as caught:
        load_dialogues(file)
    assert f"{file}: 1. Correct them:\n  line 2: " in str(caught.value)
    assert fault in str(caught.value)


def test_a_file_without_dialogues_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(LoadingError, match="has no dialogue; give a JSON Lines file with one dialogue per line"):
        load_dialogues(tmp_path / "empty.jsonl")
    with pytest.raises(LoadingError, match=r"Cannot read dialogues from .*missing\.jsonl"):
        load_dialogues(tmp_path / "missing.jsonl")
