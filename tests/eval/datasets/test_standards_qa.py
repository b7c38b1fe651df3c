import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.standards_qa import Question, load_standards_qa
from judgetree.modules.errors import LoadingError
from tests.eval.dataset_files import write_lines

FACT = {"source": "en/a.md", "quote": "Norm A names drums.", "question": "What does Norm A name?", "answer": "drums"}
SINGLE = {
    "id": "s1",
    "lang": "en",
    "question": "What does Norm A name?",
    "answer": "drums",
    "aliases": ["the drums"],
    "type": "single",
    "supporting": [FACT],
}


def test_rows_come_back_typed_and_in_file_order(tmp_path: Path) -> None:
    bridge = {**FACT, "remaining_question": "How thick are drums?"}
    chain = {**SINGLE, "id": "c1", "lang": "zh", "question": "厚度多少？", "type": "2hop", "supporting": [bridge, FACT]}
    questions = load_standards_qa(write_lines(tmp_path, chain, "", SINGLE))
    assert [question.id for question in questions] == ["c1", "s1"]
    assert questions[0].question == "厚度多少？"
    assert questions[0].is_chained
    assert [fact.remaining_question for fact in questions[0].supporting] == ["How thick are drums?", ""]
    assert questions[1].aliases == ("the drums",)
    assert not questions[1].is_chained


def test_an_unanswerable_question_needs_neither_answer_nor_facts(tmp_path: Path) -> None:
    [question] = load_standards_qa(
        write_lines(tmp_path, {**SINGLE, "type": "unanswerable", "answer": "", "aliases": [], "supporting": []})
    )
    assert question.supporting == ()


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("{not json", "row: Invalid JSON"),
        ({**SINGLE, "type": "4hop"}, "type: Input should be 'single'"),
        ({**SINGLE, "answer": " "}, "the answer is empty"),
        ({**SINGLE, "supporting": []}, "type single needs 1 supporting facts, got 0"),
        ({**SINGLE, "type": "3hop"}, "type 3hop needs 3 supporting facts, got 1"),
        ({**SINGLE, "type": "compare"}, "type compare needs at least 2 supporting facts, got 1"),
        (
            {**SINGLE, "type": "2hop", "supporting": [FACT, FACT]},
            "every hop of a chain but the last needs a remaining_question",
        ),
        ({**SINGLE, "supporting": [{**FACT, "remaining_question": "What else?"}]}, "the last hop leaves nothing open"),
        ({**SINGLE, "supporting": [{**FACT, "quote": "  "}]}, "supporting.0.quote: String should have at least 1"),
        ({key: value for key, value in SINGLE.items() if key != "lang"}, "lang: Field required"),
        ({**SINGLE, "alias": ["x"]}, "alias: Unexpected keyword argument"),
    ],
)
def test_a_malformed_row_is_named_by_its_line_and_fault(tmp_path: Path, row: object, fault: str) -> None:
    with pytest.raises(LoadingError) as caught:
        load_standards_qa(write_lines(tmp_path, SINGLE, "", row))
    assert "rows.jsonl: 1. Correct" in str(caught.value)
    assert re.search(r"\n  line 3: (row: |)" + re.escape(fault), str(caught.value))


def test_every_malformed_row_is_counted_and_the_first_ten_are_shown(tmp_path: Path) -> None:
    with pytest.raises(LoadingError) as caught:
        load_standards_qa(write_lines(tmp_path, *["{}"] * 12))
    assert "rows.jsonl: 12. Correct" in str(caught.value)
    assert "line 10:" in str(caught.value)
    assert "line 11:" not in str(caught.value)
    assert "and 2 more" in str(caught.value)


def test_an_id_may_be_used_once(tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match="line 2: id 's1' is already used in line 1"):
        load_standards_qa(write_lines(tmp_path, SINGLE, SINGLE))


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_questions_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "qa.jsonl").write_bytes(content)
    with pytest.raises(LoadingError, match="has no question"):
        load_standards_qa(tmp_path / "qa.jsonl")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match=r"missing\.jsonl"):
        load_standards_qa(tmp_path / "missing.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(LoadingError, match="UTF-8"):
        load_standards_qa(str(tmp_path / "latin.jsonl"))


@given(answer=st.text(min_size=1).filter(lambda text: text.strip() != ""))
def test_any_answer_survives_the_file(tmp_path_factory: pytest.TempPathFactory, answer: str) -> None:
    [question] = load_standards_qa(write_lines(tmp_path_factory.mktemp("qa"), {**SINGLE, "answer": answer}))
    assert question.answer == answer


def test_a_question_made_in_code_is_checked_too() -> None:
    with pytest.raises(ValueError, match="type single needs 1"):
        Question(id="x", lang="en", question="?", answer="a", type="single")
