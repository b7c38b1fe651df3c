import json
from pathlib import Path

import pytest

from judgetree.evaluation.datasets.dialogue_turns import turn_of
from judgetree.evaluation.datasets.quac import load_quac
from judgetree.evaluation.datasets.questions import Dataset
from judgetree.evaluation.datasets.rows import content_document
from judgetree.modules.errors import LoadingError
from tests.eval.dataset_files import write_lines, write_list

CONTEXT = "Ann Quill dug the canal. It is 9 km long."


def turn(number: int, dialogue: str = "d", **changes: object) -> dict[str, object]:
    answer = f"answer {number}"
    return {"dialogue_id": dialogue, "turn": number, "question": f"Question {number}?", "answer": answer, **changes}


def article(name: str, *answers: str, **changes: object) -> dict[str, object]:
    asked = [
        {
            "id": f"{name}_q#{place}",
            "question": f"{name} {place}?",
            "followup": "y",
            "yesno": "x",
            "orig_answer": {"text": answer, "answer_start": 0},
            "answers": [{"text": answer, "answer_start": 0}, {"text": "other", "answer_start": 3}],
        }
        for place, answer in enumerate(answers)
    ]
    paragraph = {"id": name, "context": f"{CONTEXT} CANNOTANSWER", "qas": asked}
    return {"title": "Tole Canal", "section_title": "Building", "paragraphs": [paragraph], **changes}


def write_official(folder: Path, *articles: object) -> Path:
    file = folder / "val.json"
    file.write_text(json.dumps({"data": articles}, indent=1), encoding="utf-8")
    return file


def paths(dataset: Dataset) -> dict[str, tuple[str, ...]]:
    return {
        question.id: (turn_of(question).parent, *(asked for asked, _ in turn_of(question).history))
        for question in dataset.questions
    }


def test_an_official_dialogue_is_asked_of_its_section(tmp_path: Path) -> None:
    dataset = load_quac(write_official(tmp_path, article("C_1", "Ann Quill", "CANNOTANSWER", "9 km")))
    [section] = dataset.documents
    assert section == content_document("Tole Canal, Building", CONTEXT)
    first, second, third = dataset.questions
    assert (first.id, first.answers, first.supporting) == ("C_1_q#0", ("Ann Quill", "other"), (section.key,))
    assert (second.answers, second.answers_known, second.supporting, second.type) == ((), True, (), "unanswerable")
    assert turn_of(third).history == (("C_1 0?", "Ann Quill"), ("C_1 1?", ""))
    assert [turn_of(question).parent for question in dataset.questions] == ["", "C_1_q#0", "C_1_q#1"]


def test_a_malformed_article_is_reported_by_its_place(tmp_path: Path) -> None:
    good, empty, again = article("C_1", "a"), article("C_2", "a", paragraphs=[]), article("C_1", "a")
    dataset = load_quac(write_official(tmp_path, good, empty, again, article("C_3", "a")))
    assert [question.id for question in dataset.questions] == ["C_1_q#0", "C_3_q#0"]
    assert [number for number, _ in dataset.malformed] == [2, 3]
    assert "'C_1_q#0' occurs twice" in dataset.malformed[1][1]


def test_turns_follow_the_one_before_unless_they_name_another(tmp_path: Path) -> None:
    rows = (turn(3, parent="d_1"), turn(1), turn(2), turn(4, id="last"), turn(5, parent=""))
    asked = paths(load_quac(write_lines(tmp_path, *rows)))
    assert asked == {
        "d_1": ("",),
        "d_2": ("d_1", "Question 1?"),
        "d_3": ("d_1", "Question 1?"),
        "last": ("d_3", "Question 1?", "Question 3?"),
        "d_5": ("",),
    }
    assert list(asked) == ["d_1", "d_2", "d_3", "last", "d_5"]


def test_a_line_may_be_a_dialogue_of_turns_that_share_something(tmp_path: Path) -> None:
    turns = [{key: value for key, value in turn(number).items() if key == "question"} for number in (1, 2)]
    dataset = load_quac(write_lines(tmp_path, {"id": "d", "lang": "fi", "context": CONTEXT, "turns": turns}))
    [document] = dataset.documents
    assert paths(dataset) == {"d_1": ("",), "d_2": ("d_1", "Question 1?")}
    assert {(question.lang, question.supporting) for question in dataset.questions} == {("fi", (document.key,))}


@pytest.mark.parametrize(
    ("given", "answers", "known"),
    [
        ({"answer": "9 km"}, ("9 km",), True),
        ({"answer": "9 km", "answers": ["nine", "9 km"]}, ("9 km", "nine"), True),
        ({"answer": None, "answers": ["nine"]}, ("nine",), True),
        ({"answer": "CANNOTANSWER"}, (), True),
        ({"answer": None, "answers": []}, (), True),
        ({"answer": None}, (), False),
    ],
)
def test_answers_are_given_or_unknown(
    tmp_path: Path, given: dict[str, object], answers: tuple[str, ...], known: bool
) -> None:
    first, second = load_quac(write_lines(tmp_path, turn(1, context=CONTEXT, **given), turn(2))).questions
    assert (first.answers, first.answers_known) == (answers, known)
    assert bool(first.supporting) == first.is_answerable
    assert turn_of(second).history == (("Question 1?", answers[0] if answers else ""),)


def test_passages_are_pooled_and_named_by_their_ids(tmp_path: Path) -> None:
    canal, lock = {"id": "c", "title": "Canal", "text": "Dug."}, {"id": "l", "text": "Built."}
    rows = (turn(1, passages=[canal, lock], supporting=["l"]), turn(2, passages=[{**canal, "id": "x"}], supporting=[]))
    dataset = load_quac(write_list(tmp_path, *rows))
    assert [document.text for document in dataset.documents] == ["Canal. Dug.", "Built."]
    assert [question.supporting for question in dataset.questions] == [(dataset.documents[1].key,), ()]


def test_what_a_turn_tells_of_itself_is_kept(tmp_path: Path) -> None:
    row = turn(1, rewrite="Whole?", type="why", topic_switch=False, from_history=True)
    [question] = load_quac(write_lines(tmp_path, row)).questions
    told = turn_of(question)
    assert (question.type, told.rewrite, told.topic_switch, told.from_history) == ("why", "Whole?", False, True)


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (turn(2, supporting=["x"]), "'x' is not the id of one of its passages"),
        (turn(2, question=""), "question: "),
        (turn(2, parent="d_9"), "d_9 is missing or malformed"),
        (turn(2, parent="d_2"), "d_2 is not an earlier turn"),
        (turn(2, parent="e_1"), "e_1 is not an earlier turn of the same dialogue"),
        (turn(1, id="other"), "'turn 1 of d' occurs twice"),
        (turn(2, id="d_1"), "'d_1' occurs twice"),
        ({"id": "d", "turns": []}, "turns: the list is empty"),
    ],
)
def test_a_malformed_turn_is_reported_with_its_followers(tmp_path: Path, bad: dict[str, object], fault: str) -> None:
    dataset = load_quac(write_lines(tmp_path, turn(1, "e"), turn(1), "", bad, turn(3), turn(4), turn(5, parent="d_1")))
    assert [question.id for question in dataset.questions] == ["e_1", "d_1", "d_5"]
    assert [number for number, _ in dataset.malformed] == [4, 5, 6]
    assert fault in dataset.malformed[0][1]


def test_a_dialogue_with_a_malformed_turn_is_left_out_whole(tmp_path: Path) -> None:
    good, bad = ({"id": name, "turns": [{"question": "Who?"}, {"question": text}]} for name, text in ("aW", "b "))
    dataset = load_quac(write_lines(tmp_path, bad, good))
    assert [question.id for question in dataset.questions] == ["a_1", "a_2"]
    assert [number for number, _ in dataset.malformed] == [1]


@pytest.mark.parametrize("content", ['{"text": "x"}\n', '{"data": [{"title": "x"}]}'])
def test_rows_of_another_format_are_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "rows.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(LoadingError, match="Is the format right"):
        load_quac(file)
