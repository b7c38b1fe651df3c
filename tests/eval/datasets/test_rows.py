import codecs
import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import CorpusDocument, Dataset, DialogueTurn, EvalQuestion
from judgetree.evaluation.datasets.rows import (
    RowReader,
    content_document,
    language_tag,
    select_questions,
    titled_text,
    unique_answers,
    with_digests,
)
from judgetree.modules.errors import LoadingError, SettingsError
from tests.eval.dataset_files import write_lines, write_list

TEXT = st.text(max_size=8)
TURN = DialogueTurn(dialogue_id="d", number=1)


def read_number(row: object) -> int:
    if not isinstance(row, int):
        raise ValueError(f"no number: {row!r}")
    return row


def numbers(reader: RowReader) -> list[int]:
    return list(reader.rows(read_number, key=lambda number: number))


def question(number: int, **changes: object) -> EvalQuestion:
    return replace(EvalQuestion(id=f"q{number}", question="Which?", answers=("this",)), **changes)  # type: ignore[arg-type]


def dataset(count: int = 3) -> Dataset:
    documents = tuple(content_document(f"Title {number}", "body") for number in range(count))
    return with_digests(Dataset(name="tiny", questions=tuple(map(question, range(count))), documents=documents))


def test_a_list_and_lines_give_the_same_rows(tmp_path: Path) -> None:
    assert numbers(RowReader(file=write_list(tmp_path, 3, 1, 2))) == [3, 1, 2]
    for name in ("rows.jsonl", "rows.json"):
        assert numbers(RowReader(file=write_lines(tmp_path, 3, 1, 2, name=name))) == [3, 1, 2]


@pytest.mark.parametrize("content", [b"1\r\n\r\n  \r\n2\r\n", b"\n\n1\n2", b"[1,\r\n 2]", b"\n [1, 2]\n"])
def test_marks_line_ends_and_blank_lines_are_tolerated(tmp_path: Path, content: bytes) -> None:
    for start in (b"", codecs.BOM_UTF8):
        (tmp_path / "rows.json").write_bytes(start + content)
        assert numbers(RowReader(file=tmp_path / "rows.json")) == [1, 2]


@pytest.mark.parametrize("start", [b"", codecs.BOM_UTF8, b" \n" * 5000])
def test_a_list_in_one_line_may_be_longer_than_any_row(tmp_path: Path, start: bytes) -> None:
    (tmp_path / "rows.json").write_bytes(start + b"[" + b", ".join(b"%d" % number for number in range(99)) + b"]")
    assert numbers(RowReader(file=tmp_path / "rows.json", max_line_bytes=100)) == [*range(99)]


def test_malformed_rows_are_kept_by_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    reader = RowReader(file=write_lines(tmp_path, 1, "", "{broken", "2", '"two"', 1))
    assert numbers(reader) == [1, 2]
    with caplog.at_level(logging.WARNING):
        malformed = reader.checked()
    assert [number for number, _ in malformed] == [3, 5, 6]
    assert "it is not JSON" in malformed[0][1]
    assert malformed[1][1] == "no number: 'two'"
    assert malformed[2][1] == "1 was already in row 1"
    assert "Left out 3 of 5 rows" in caplog.text


def test_one_line_that_is_not_utf8_or_is_too_deep_spoils_itself_alone(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"1\n\xff\xfe\n" + b"[" * 100_000 + b"\n2\n")
    reader = RowReader(file=tmp_path / "rows.jsonl")
    assert numbers(reader) == [1, 2]
    assert [number for number, _ in reader.malformed] == [2, 3]


def test_a_file_of_malformed_rows_alone_is_refused_with_the_first_ten(tmp_path: Path) -> None:
    reader = RowReader(file=write_list(tmp_path, *[f"x{number}" for number in range(12)]))
    assert numbers(reader) == []
    with pytest.raises(LoadingError, match=r"All rows of .*rows\.json are malformed \(12\)") as caught:
        reader.checked()
    assert "row 10: no number: 'x9'" in str(caught.value)
    assert "x10" not in str(caught.value)


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    for file in (write_list(tmp_path), write_lines(tmp_path, "", " ")):
        reader = RowReader(file=file)
        assert numbers(reader) == []
        with pytest.raises(LoadingError, match="has no rows"):
            reader.checked()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text("[1, 2")
    for name, said in (("none.json", r"none\.json"), ("", "it is a folder"), ("cut.json", "cut")):
        with pytest.raises(LoadingError, match=said):
            numbers(RowReader(file=tmp_path / name))


@given(TEXT, TEXT, TEXT, TEXT)
def test_documents_share_a_key_just_when_they_are_equal(title: str, body: str, other: str, text: str) -> None:
    assert content_document("Oslo", "A city.").key == "Oslo [42a87a177b7c]", "a key never changes"
    first, second = content_document(title.replace("\x00", ""), body), content_document(other.replace("\x00", ""), text)
    assert (first.key == second.key) == (
        (first.title, body.replace("\x00", "")) == (second.title, text.replace("\x00", ""))
    )


@pytest.mark.parametrize(
    ("title", "body", "text"),
    [("A", "b", "A. b"), ("A", "", "A"), ("A", " ", "A"), ("", "b", "b"), ("D.C.", " b", "D.C..  b")],
)
def test_the_text_is_title_and_body(title: str, body: str, text: str) -> None:
    assert titled_text(title, body) == text


def test_answers_stand_once_in_their_order() -> None:
    assert unique_answers(["b", " ", "a", "b", ""]) == ("b", "a")


def test_the_language_goes_by_the_letters() -> None:
    assert [language_tag(text) for text in ("Which?", "哪一条河？", "1 + 1?")] == ["en", "zh", "en"]


@given(st.integers(1, 4))
def test_a_limit_takes_a_prefix_and_leaves_the_corpus_whole(limit: int) -> None:
    whole = dataset()
    part = select_questions(whole, limit=limit)
    assert part.questions == whole.questions[:limit]
    assert part.documents == whole.documents
    assert part.corpus_digest == whole.corpus_digest
    assert (part.digest == whole.digest) == (limit >= len(whole.questions))


def test_ids_choose_in_file_order_before_the_limit() -> None:
    chosen = select_questions(dataset(), ids=["q2", "q1"], limit=1)
    assert [question.id for question in chosen.questions] == ["q1"]
    assert [question.id for question in select_questions(dataset(), ids="q2").questions] == ["q2"]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"limit": 0}, "limit=0 leaves no question"),
        ({"ids": []}, "none given"),
        ({"ids": ["q1", "x"]}, r"ids name no question of tiny: x\. Its 3 ids begin with 'q0'"),
        ({"ids": [f"x{number}" for number in range(12)]}, "and 2 more"),
    ],
)
def test_a_choice_that_does_not_fit_is_refused(choice: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        select_questions(dataset(), **choice)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "q9"},
        {"question": "What?"},
        {"answers": ("this", "that")},
        {"answers_known": False},
        {"lang": "zh"},
        {"type": "bridge"},
        {"hops": 2},
        {"supporting": ("Title 0",)},
        {"turn": TURN},
    ],
)
def test_the_digest_sees_every_field_of_a_question(changes: dict[str, object]) -> None:
    whole = dataset()
    other = with_digests(replace(whole, questions=(question(0, **changes), *whole.questions[1:])))
    assert other.digest != whole.digest
    assert other.corpus_digest == whole.corpus_digest


@pytest.mark.parametrize(
    "changes",
    [
        {"dialogue_id": "e"},
        {"number": 2},
        {"parent": "q1"},
        {"history": (("Who?", "He."),)},
        {"rewrite": "Which one?"},
        {"topic_switch": True},
        {"from_history": False},
    ],
)
def test_the_digest_sees_every_field_of_a_turn(changes: dict[str, object]) -> None:
    turns = TURN, replace(TURN, **changes)  # type: ignore[arg-type]
    one, two = (with_digests(Dataset(name="tiny", questions=(question(0, turn=turn),))) for turn in turns)
    assert one.digest != two.digest


@pytest.mark.parametrize("changes", [{"key": "k"}, {"text": "t"}, {"title": "t"}, {"metadata": {"year": 1999}}])
def test_both_digests_see_every_field_of_a_document(changes: dict[str, object]) -> None:
    whole = dataset()
    document: CorpusDocument = replace(whole.documents[0], **changes)  # type: ignore[arg-type]
    other = with_digests(replace(whole, documents=(document, *whole.documents[1:])))
    assert other.corpus_digest != whole.corpus_digest
    assert other.digest != whole.digest


def test_without_a_corpus_there_is_no_corpus_digest() -> None:
    assert with_digests(Dataset(name="tiny", questions=(question(0),))).corpus_digest == ""


@given(st.lists(st.one_of(st.integers(), TEXT), max_size=6))
def test_every_row_is_accepted_or_reported(tmp_path_factory: pytest.TempPathFactory, rows: list[object]) -> None:
    file = write_lines(tmp_path_factory.mktemp("rows"), *(json.dumps(row) for row in rows))
    reader = RowReader(file=file)
    assert len(numbers(reader)) == reader.accepted == len({row for row in rows if isinstance(row, int)})
    assert reader.accepted + len(reader.malformed) == len(rows)
