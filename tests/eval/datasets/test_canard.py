from pathlib import Path

import pytest

from judgetree.evaluation.datasets.canard import load_canard
from judgetree.evaluation.datasets.dialogue_turns import turn_of
from tests.eval.dataset_files import fault_of, write_list

TURNS = (("Who dug it?", "Ann Quill"), ("When?", "CANNOTANSWER"), ("How long is it?", "9 km"))


def row(number: int, dialogue: str = "C_1", **changes: object) -> dict[str, object]:
    history = ["Tole Canal", "Building", *(text for pair in TURNS[: number - 1] for text in pair)]
    return {
        "History": history,
        "QuAC_dialog_id": dialogue,
        "Question": TURNS[number - 1][0],
        "Question_no": number,
        "Rewrite": f"Rewrite {number}?",
        **changes,
    }


def test_answers_are_those_that_later_turns_tell(tmp_path: Path) -> None:
    dataset = load_canard(write_list(tmp_path, row(3), row(1), row(2)))
    first, second, third = dataset.questions
    assert [question.id for question in dataset.questions] == ["C_1_1", "C_1_2", "C_1_3"]
    assert (first.answers, first.answers_known) == (("Ann Quill",), True)
    assert (second.answers, second.answers_known, second.type) == ((), True, "unanswerable")
    assert (third.answers, third.answers_known) == ((), False)
    assert dataset.documents == ()


def test_a_history_begins_with_the_first_question(tmp_path: Path) -> None:
    *_, last = load_canard(write_list(tmp_path, row(1), row(2), row(3))).questions
    turn = turn_of(last)
    assert turn.history == (("Who dug it?", "Ann Quill"), ("When?", ""))
    assert (turn.dialogue_id, turn.number, turn.parent, turn.rewrite) == ("C_1", 3, "C_1_2", "Rewrite 3?")


def test_an_answer_to_another_wording_or_of_another_dialogue_is_none(tmp_path: Path) -> None:
    rows = (row(1, Question="Who made it?"), row(2), row(1, dialogue="C_2"))
    assert [question.answers_known for question in load_canard(write_list(tmp_path, *rows)).questions] == [False] * 3


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"History": ["Tole Canal", "Building", "Who dug it?"]}, "its last question has no answer"),
        ({"History": ["Tole Canal"]}, "History: "),
        ({"Question_no": 0}, "Question_no: "),
        ({"Rewrite": ""}, "Rewrite: "),
        ({"Question_no": 1}, "'C_1_1' was already in row 1"),
    ],
)
def test_a_malformed_row_is_reported_and_left_out(tmp_path: Path, changes: dict[str, object], fault: str) -> None:
    dataset = load_canard(write_list(tmp_path, row(1), row(2, **changes)))
    assert [question.id for question in dataset.questions] == ["C_1_1"]
    assert fault in fault_of(dataset, 2)
