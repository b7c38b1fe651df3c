from pathlib import Path

import pytest

from judgetree.evaluation.datasets.cast import load_cast
from judgetree.evaluation.datasets.dialogue_turns import turn_of
from judgetree.modules.errors import LoadingError
from tests.eval.dataset_files import fault_of, write_list

ASKED = ("What is a weir?", "Who builds them?", "And locks?")


def topic(number: int, *asked: str, **changes: object) -> dict[str, object]:
    turns = [{"number": place, "raw_utterance": question} for place, question in enumerate(asked, start=1)]
    return {"number": number, "title": "rivers", "turn": turns, **changes}


def row(number: int, **changes: object) -> dict[str, object]:
    history = [{"role": "user", "text": question} for question in ASKED[: number - 1]]
    shared = {"id": f"7_{number}", "topic_id": "7", "turn": number, "topic_title": "rivers"}
    return {**shared, "history": history, "question": ASKED[number - 1], "rewrite": f"Rewrite {number}?", **changes}


def write_table(folder: Path, *lines: str, name: str = "topics_resolved_v1.0.tsv") -> None:
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_both_layouts_mean_the_same(tmp_path: Path) -> None:
    rows, topics = tmp_path / "rows", tmp_path / "topics"
    rows.mkdir()
    topics.mkdir()
    write_table(topics, *(f"7_{number}\tRewrite {number}?" for number in (1, 2, 3)))
    by_turn = load_cast(write_list(rows, *(row(number) for number in (1, 2, 3))))
    by_topic = load_cast(write_list(topics, topic(7, *ASKED)))
    assert by_turn == by_topic
    assert by_turn.malformed == ()


def test_a_turn_has_history_and_rewrite_but_no_answer_or_document(tmp_path: Path) -> None:
    dataset = load_cast(write_list(tmp_path, row(1), row(2), row(3)))
    assert [question.id for question in dataset.questions] == ["7_1", "7_2", "7_3"]
    last = dataset.questions[2]
    turn = turn_of(last)
    assert (turn.dialogue_id, turn.number, turn.parent, turn.rewrite) == ("7", 3, "7_2", "Rewrite 3?")
    assert turn.history == ((ASKED[0], ""), (ASKED[1], ""))
    assert (turn.topic_switch, turn.from_history) == (None, None)
    assert (last.answers, last.answers_known, last.supporting) == ((), False, ())
    assert (dataset.documents, dataset.folder) == ((), None)


def test_answers_that_the_file_tells_stand_in_the_history(tmp_path: Path) -> None:
    told = [{"role": "user", "text": ASKED[0]}, {"role": "system", "text": "A low dam."}]
    [question] = load_cast(write_list(tmp_path, row(2, history=told))).questions
    assert turn_of(question).history == ((ASKED[0], "A low dam."),)
    assert turn_of(question).parent == ""


def test_a_folder_stands_for_its_topics_and_tables(tmp_path: Path) -> None:
    write_list(tmp_path, topic(8, *ASKED), name="evaluation_topics_v1.0.json")
    write_table(tmp_path, "8_2\tWho builds weirs?", "no table", "9_1\tOf another file.", name="a_resolved.tsv")
    write_table(tmp_path, "8_2\tOlder.", "8_3\tAnd who builds locks?", name="b_resolved.tsv")
    dataset = load_cast(tmp_path)
    rewrites = [turn_of(question).rewrite for question in dataset.questions]
    assert rewrites == ["", "Who builds weirs?", "And who builds locks?"]
    assert fault_of(dataset, 2).startswith("a_resolved.tsv:")


def test_rewrites_within_a_topic_go_before_those_of_a_table(tmp_path: Path) -> None:
    within = {"number": 1, "raw_utterance": "Who?", "manual_rewritten_utterance": "Who builds weirs?"}
    write_table(tmp_path, "9_1\tOther.")
    [question] = load_cast(write_list(tmp_path, {"number": 9, "turn": [within]})).questions
    assert turn_of(question).rewrite == "Who builds weirs?"


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (row(2, history=[]), "turn 2 needs 1 earlier questions, got 0"),
        (row(1), "'7_1' was already in row 1"),
        (row(2, question=" "), "question: "),
        (row(2, history=[{"role": "system", "text": "Hello."}]), "the first message is from 'system'"),
        (topic(8, *ASKED, turn=[{"number": 2, "raw_utterance": "Who?"}]), "must be 1, 2, 3"),
        (topic(8), "turn: "),
        (topic(8, "What?", ""), "raw_utterance: "),
    ],
)
def test_a_malformed_row_is_reported_and_left_out(tmp_path: Path, bad: dict[str, object], fault: str) -> None:
    dataset = load_cast(write_list(tmp_path, row(1), bad, row(3)))
    assert [question.id for question in dataset.questions] == ["7_1", "7_3"]
    assert fault in fault_of(dataset, 2)


@pytest.mark.parametrize("names", [(), ("a_topics.json", "b_topics.json")])
def test_a_folder_must_hold_one_file_of_topics(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        write_list(tmp_path, topic(7, *ASKED), name=name)
    with pytest.raises(LoadingError, match=", ".join(names) or "none"):
        load_cast(tmp_path)
