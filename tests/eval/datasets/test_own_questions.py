"""Question files of one's own: every format, usual and own column names, answers known or not, gold documents."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from judgetree.evaluation import EvalQuestion, load_dataset
from judgetree.evaluation.datasets.own_questions import load_own_questions, questions_in
from judgetree.evaluation.question_files.kept_questions import keep_questions, with_questions_kept
from judgetree.modules.errors import LoadingError, SettingsError
from judgetree.modules.index.parser_process import LARGE_BYTES

HEADER = ("Nr", "Question", "Ground_Truth", "type")
ROWS = (
    ("7", 'Which oil does "KS-1", the mill, need?', "VG 68 | ISO VG 68", "fact"),
    ("8", "Wie heiß wird\nes?", "", ""),
    ("9", "Who signed it?", "", "unanswerable"),
)
EXPECTED = (
    ("q2", 'Which oil does "KS-1", the mill, need?', ("VG 68", "ISO VG 68"), True),
    ("q3", "Wie heiß wird\nes?", (), False),
    ("q4", "Who signed it?", (), True),
)


def frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=HEADER)


def as_csv(separator: str, encoding: str = "utf-8") -> Callable[[Path], None]:
    return lambda file: frame().to_csv(file, index=False, sep=separator, encoding=encoding)


WRITERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "comma": ("q.csv", as_csv(",")),
    "semicolon": ("q.csv", as_csv(";")),
    "byte order mark": ("q.CSV", as_csv(";", "utf-8-sig")),
    "tab": ("q.tsv", as_csv("\t")),
    "json lines": ("q.jsonl", lambda file: frame().to_json(file, orient="records", lines=True, force_ascii=False)),
    "json": ("q.json", lambda file: frame().to_json(file, orient="records", force_ascii=False)),
    "workbook": ("q.xlsx", lambda file: frame().to_excel(file, index=False)),
}


def shown(question: EvalQuestion) -> tuple[str, str, tuple[str, ...], bool]:
    return question.id, question.question, question.answers, question.answers_known


@pytest.mark.parametrize("claimed", ["A1", "A1:B3", "A1:D2", "A1:Z99"])
def test_a_workbook_whose_range_is_wrong_loses_nothing(tmp_path: Path, claimed: str) -> None:
    frame().to_excel(tmp_path / "q.xlsx", index=False)
    with ZipFile(tmp_path / "q.xlsx") as right, ZipFile(tmp_path / "wrong.xlsx", "w") as wrong:
        for name in right.namelist():
            wrong.writestr(name, re.sub(rb'(?<=<dimension ref=")[^"]*', claimed.encode(), right.read(name)))
    dataset = load_own_questions(tmp_path / "wrong.xlsx", columns={"id": "Nr", "type": "type"})
    assert [(each.id, each.question, each.type) for each in dataset.questions] == [
        ("7", ROWS[0][1], "fact"),
        ("8", ROWS[1][1], ""),
        ("9", ROWS[2][1], "unanswerable"),
    ]


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read_alike(tmp_path: Path, name: str) -> None:
    file, write = WRITERS[name]
    write(tmp_path / file)
    first_row = 1 if "json" in name else 2
    expected = [(f"q{number}", *each[1:]) for number, each in enumerate(EXPECTED, start=first_row)]
    loaded = load_dataset(f"questions:{tmp_path / file}", separator="|")
    assert [shown(question) for question in loaded.questions] == expected


def test_columns_with_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_text("Nr,Frage,Antwort\n1,Wer?,Ada\n", encoding="utf-8")
    columns = {"id": "nr", "question": "Frage", "answer": "Antwort"}
    [question] = load_own_questions(file, columns=columns).questions
    assert shown(question) == ("1", "Wer?", ("Ada",), True)
    with pytest.raises(LoadingError, match=r"no column question; there are Nr, Frage, Antwort. Name it: --columns"):
        load_own_questions(file)
    with pytest.raises(LoadingError, match="no column 'Fragen'; there are"):
        load_own_questions(file, columns={"question": "Fragen"})
    with pytest.raises(SettingsError, match=r"'frage' is not allowed. Allowed: id, question, answer"):
        load_own_questions(file, columns={"frage": "Frage"})


@pytest.mark.parametrize("as_text", [False, True])
def test_a_list_in_a_list_names_documents_of_which_any_one_will_do(tmp_path: Path, as_text: bool) -> None:
    def read(supporting: object) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        cell = json.dumps(supporting) if as_text else supporting
        (question,) = load_own_questions(keep_questions([{"question": "One?", "supporting": cell}], tmp_path)).questions
        return question.supporting, question.alternatives

    assert read(["c", ["a", "b"], ["d"]]) == (("c", "a", "d"), (("a", "b"),))
    assert read([["a", "b", "a"]]) == (("a",), (("a", "b"),))
    assert read([["a", {"source": "b"}], {"source": "c", "quote": "C."}, "d"]) == (("a", "c", "d"), (("a", "b"),))
    assert read([[{"source": "a"}, {"source": "b"}], [{"source": "c"}]]) == (("a", "c"), (("a", "b"),))
    for twice in (["a", ["a", "b"]], ["b", ["a", "b"]], [["a", "b"], ["b", "c"]], [["a", "b"], ["a", "c"]]):
        with pytest.raises(
            LoadingError, match=r"'[ab]' stands in a list of documents of which any one will do, and once"
        ):
            read(twice)
    for wrong, said in (
        ([[["a"]]], "is a list where a text is allowed"),
        ({"file": "a"}, "is an object with the keys file"),
        (["a", {"file": "b"}], "mixes objects and texts"),
    ):
        with pytest.raises(LoadingError, match=rf'{said}. Allowed are a text, \{{"source": …\}}, a list of these'):
            read(wrong)


def test_gold_documents_are_files_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("a.md", "b.md"):
        (tmp_path / "docs" / name).write_text(f"About {name}.", encoding="utf-8")
    rows = [
        {"question": "One?", "supporting": ["a.md", "b.md", "a.md"]},
        {"question": "Two?", "supporting": '["a.md", "b.md"]'},
        {"question": "Three?", "supporting": '["b.md"]'},
        {"question": "Four?", "supporting": "bb.md"},
    ]
    file = keep_questions(rows, tmp_path)
    with pytest.raises(LoadingError, match=r"1 of 4 rows .*--skip-bad-rows.*\n  row 4: supporting: there is no file"):
        load_dataset(f"questions:{file}", folder=tmp_path / "docs")
    dataset = load_dataset(f"questions:{file}", folder=tmp_path / "docs", skip_bad_rows=True)
    assert [question.supporting for question in dataset.questions] == [("a.md", "b.md"), ("a.md", "b.md"), ("b.md",)]
    assert dataset.malformed == ((4, "supporting: there is no file 'bb.md' in the folder; is it 'b.md'?"),)
    assert (dataset.folder, dataset.key_field, len(dataset.corpus_digest)) == (tmp_path / "docs", "source", 64)


def test_the_separator_is_the_one_that_makes_known_columns(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_text("question;answer;remark, or two, or three\nWer?;Ada;x\n", encoding="utf-8")
    [question] = load_own_questions(file).questions
    assert (question.question, question.answers) == ("Wer?", ("Ada",))
    file.write_text("Frage;Antwort;remark, or two, or three\nWer?;Ada;x\n", encoding="utf-8")
    [question] = load_own_questions(file, columns={"question": "Frage", "answer": "Antwort"}).questions
    assert (question.question, question.answers) == ("Wer?", ("Ada",))


def test_a_frame_and_a_list_are_kept_as_a_file_named_by_its_content(tmp_path: Path) -> None:
    numbers = pd.DataFrame({"question": ["How many?", "When?"], "answer": [3.0, None], "hops": [2, 1]})
    first = keep_questions(numbers, tmp_path)
    assert [shown(each)[1:] for each in load_own_questions(first).questions] == [
        ("How many?", ("3",), True),
        ("When?", (), False),
    ]
    second = keep_questions(["Who?", {"question": "Why?"}], tmp_path)
    assert [question.question for question in load_own_questions(second).questions] == ["Who?", "Why?"]
    assert first != second
    assert keep_questions(numbers, tmp_path) == first


def test_dates_missing_values_and_a_series_are_kept(tmp_path: Path) -> None:
    days = [pd.Timestamp("2024-05-01"), pd.NaT]
    texts = pd.array(["a", pd.NA], dtype="string")
    asked = pd.DataFrame({"question": ["When?", "Who?"], "answer": days, "type": texts, "seen": days})
    [first, second] = load_own_questions(keep_questions(asked, tmp_path)).questions
    assert (first.answers, first.type) == (("2024-05-01",), "a")
    assert (second.answers, second.type) == ((), "")
    series = load_own_questions(keep_questions(asked["question"], tmp_path)).questions
    assert [question.question for question in series] == ["When?", "Who?"]


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        (pd.Timestamp("2024-05-01 13:04"), ("2024-05-01 13:04:00",)),
        (pd.Timestamp("2024-05-01", tz="UTC"), ("2024-05-01",)),
        (np.datetime64("2024-05-01", "ns"), ("2024-05-01",)),
        (np.array(["2024-05-01", "NaT"], dtype="datetime64[ns]"), ("2024-05-01",)),
        (np.float32(0.1), ("0.1",)),
        (np.array([0.1, 3], dtype="float32"), ("0.1", "3")),
    ],
)
def test_values_of_numpy_and_pandas_are_answers_as_pandas_writes_them(
    tmp_path: Path, answer: object, texts: tuple[str, ...]
) -> None:
    rows = [{"question": "Which?", "answer": answer}]
    [kept] = load_own_questions(keep_questions(rows, tmp_path)).questions
    [framed] = load_own_questions(keep_questions(pd.DataFrame(rows), tmp_path)).questions
    assert kept.answers == framed.answers == texts


@pytest.mark.parametrize("kind", ["float16", "float32", "Float32"])
def test_short_floats_of_a_frame_are_answers_as_pandas_writes_them(tmp_path: Path, kind: str) -> None:
    asked = pd.DataFrame({"question": ["How far?", "How high?"], "answer": pd.Series([0.1, None], dtype=kind)})
    [first, second] = load_own_questions(keep_questions(asked, tmp_path)).questions
    assert (first.answers, second.answers) == (("0.1",), ())


def indexed(name: str | None = None) -> pd.DataFrame:
    return pd.DataFrame({"question": ["Who?", "When?"], "n": [1, 2]}, index=pd.Index(["w", "t"], name=name))


def ids_of(given: object, folder: Path, **options: dict[str, str]) -> list[str]:
    return [each.id for each in load_own_questions(keep_questions(given, folder), **options).questions]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, "qid", "ID", "Nr"])
def test_the_index_of_a_frame_names_its_questions(tmp_path: Path, name: str | None) -> None:
    assert ids_of(indexed(name), tmp_path) == ["w", "t"]
    assert ids_of(indexed(name)["question"], tmp_path) == ["w", "t"]
    assert [each.id for each in load_dataset_of(indexed(name))] == ["w", "t"]


def load_dataset_of(frame: pd.DataFrame) -> tuple[EvalQuestion, ...]:
    return questions_in(frame, name="questions").questions


def test_an_index_that_numbers_or_repeats_names_no_question(tmp_path: Path) -> None:
    plain = indexed().reset_index(drop=True)
    assert ids_of(plain, tmp_path) == ids_of(pd.concat([indexed()] * 2).iloc[[0, 2]], tmp_path) == ["q1", "q2"]
    assert ids_of(plain[1:], tmp_path) == ["q1"]
    assert ids_of(indexed().assign(id=["a", "b"]), tmp_path) == ["a", "b"]
    assert ids_of(indexed("Nr"), tmp_path, columns={"id": "Nr"}) == ["w", "t"]
    asked = plain.set_index("question")
    assert [each.question for each in load_own_questions(keep_questions(asked, tmp_path)).questions] == [
        "Who?",
        "When?",
    ]


@pytest.mark.parametrize("orient", ["index", "columns", "split", "table"])
def test_the_index_that_pandas_writes_names_the_questions(tmp_path: Path, orient: Literal["index"]) -> None:
    file = tmp_path / "q.json"

    def ids(frame: pd.DataFrame, **options: dict[str, str]) -> list[str]:
        frame.to_json(file, orient=orient)
        return [each.id for each in load_own_questions(file, **options).questions]  # type: ignore[arg-type]

    assert ids(indexed()) == ["w", "t"]
    assert ids(indexed(), columns={"id": "Nr"} if orient != "table" else {"id": "index"}) == ["w", "t"]
    assert ids(indexed().reset_index(drop=True)) == ["q1", "q2"]
    assert ids(indexed().assign(id=["a", "b"])) == ["a", "b"]
    assert ids(indexed().set_index(pd.Index([7, 3]))) == ["7", "3"]


def test_a_frame_with_two_columns_of_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"two columns 'question'. Rename"):
        keep_questions(pd.DataFrame([["Who?", "When?"]], columns=["question", "question"]), tmp_path)


@pytest.mark.parametrize("given", [[], (), pd.DataFrame(), pd.DataFrame({"question": []}), pd.Series([], dtype=str)])
def test_no_questions_are_said_to_be_none(tmp_path: Path, given: object) -> None:
    """An empty frame was printed as "Empty DataFrame Columns: [] …", and asked for a DataFrame."""
    with pytest.raises(SettingsError, match=r"^questions is empty\. Give at least one question\.$"):
        keep_questions(given, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("given", [{}, 7, b"Who?", [object()]])
def test_other_values_are_no_questions(tmp_path: Path, given: object) -> None:
    with pytest.raises(SettingsError, match="Give "):
        keep_questions(given, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("q.csv", "question\nWer hört \u00fc?\n".encode() * 9 + b"\xff\n", r"broken places, the first in line 19"),
        ("q.csv", b'question\n"open\n', "as CSV: row 2 is broken: unexpected end"),
        ("q.csv", b"question,answer\n", "has no rows"),
        ("q.csv", b"", "has no rows"),
        ("q.xlsx", b"question\nWho?\n", "workbook"),
        ("q.jsonl", b'"Who?"\n', "not an object with keys"),
        ("q.csv", b"question,answer\n,Ada\n", "row 2: its question is empty"),
        ("q.csv", b"question\nWho wrote, and when?\n", "row 2: it has 2 cells, and the first row names 1 columns"),
        ("q.csv", b"question,answer\nWho, when?,Ada\n", "row 2: it has 3 cells"),
        ("q.csv", b"question,Question,answer\nWho?,When?,Ada\n", "there are 2 columns 'question'. Rename"),
        (
            "q.csv",
            b"question,answer\nWho?," + b"[" * 600 + b"]" * 600 + b"\n",
            "row 2: answer: .* is a list where",
        ),
        (
            "q.jsonl",
            b'{"question":"Who?","answer":' + b"[" * 900 + b"]" * 900 + b"}\n",
            "row 1: answer: .* is a list where",
        ),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, name: str, content: bytes, fault: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LoadingError, match=fault):
        load_own_questions(tmp_path / name)


def test_columns_without_a_use_may_repeat_and_rows_may_end_in_empty_cells(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_text("question,note,note,\nWho?,a,b,,,\nWhen?\n", encoding="utf-8")
    assert [question.question for question in load_own_questions(file).questions] == ["Who?", "When?"]


def test_a_repeated_id_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    file = tmp_path / "q.json"
    file.write_text(json.dumps([{"id": 1, "query": "A?"}, {"id": "1", "query": "B?"}]), encoding="utf-8")
    assert load_own_questions(file, skip_bad_rows=True).malformed == ((2, "'1' was already in row 1"),)
    with pytest.raises(LoadingError, match="There is no folder"):
        load_own_questions(file, folder=tmp_path / "docs")


def test_what_pandas_writes_in_one_line_is_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"question": [f"{'What is it? ' * 40}{number}" for number in range(10_000)]})
    frame.to_json(tmp_path / "q.json", orient="records")
    assert (tmp_path / "q.json").stat().st_size > LARGE_BYTES
    assert len(load_own_questions(tmp_path / "q.json").questions) == 10_000


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("q.csv.gz", "gunzip"),
        ("q.zip", "unpack"),
        ("q.xls", ".xlsx"),
        ("q.ods", ".xlsx"),
        ("q.parquet", "read_parquet"),
    ],
)
def test_files_of_other_formats_are_refused_with_what_to_do(tmp_path: Path, name: str, remedy: str) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8b\x08 any bytes\n")
    with pytest.raises(LoadingError, match=re.escape(remedy)):
        load_own_questions(tmp_path / name)


def test_lists_of_numpys_scalars_are_read_as_lists(tmp_path: Path) -> None:
    """numpy 2 prints ``list(array)`` so; the whole print was the gold answer, which no reply equals."""
    answers = [*np.array(["Ada", "Lady L."])], [np.float64(3.5), np.int64(7)]
    frame = pd.DataFrame({"question": ["Who?", "How many?"], "answer": answers})
    frame.to_csv(tmp_path / "q.csv", index=False)
    assert "np.str_('Ada')" in (tmp_path / "q.csv").read_text(encoding="utf-8")
    expected = [("Ada", "Lady L."), ("3.5", "7")]
    assert [each.answers for each in load_own_questions(tmp_path / "q.csv").questions] == expected


def test_an_encoding_is_refused_for_questions_that_are_no_file(tmp_path: Path) -> None:
    """They are kept as UTF-8, which was then read in the encoding of the file that pandas had read."""
    keys = {"questions": pd.DataFrame({"question": ["Où est Zoë ?"]}), "encoding": "latin-1"}
    with pytest.raises(SettingsError, match="encoding='latin-1' is not allowed"):
        with_questions_kept(keys, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert with_questions_kept({"questions": "q.csv", "encoding": "latin-1"}, tmp_path)["encoding"] == "latin-1"


def test_a_column_that_some_rows_use_is_not_said_to_be_unused(tmp_path: Path) -> None:
    rows = [{"question": "A?", "answer": "a"}, {"query": "B?", "gold": "b", "topic": "c"}]
    read = load_own_questions(keep_questions(rows, tmp_path)).read
    assert read is not None
    assert (read.with_answers, read.unused) == (2, ("topic",))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([1714521600000, 1717248600000], "may be dates as milliseconds"),
        ([1714521600000, "Ada"], ""),
        (["1.0", "2.0"], "end in .0"),
        (["1.0", "2.5"], ""),
    ],
)
def test_numbers_that_pandas_makes_of_dates_and_blanks_are_told(
    tmp_path: Path, answers: list[object], said: str
) -> None:
    file = tmp_path / "q.json"
    file.write_text(json.dumps([{"question": f"Q{i}?", "answer": each} for i, each in enumerate(answers)]))
    dataset = load_own_questions(file)
    assert dataset.read is not None
    assert (said in " ".join(dataset.read.doubts)) if said else not dataset.read.doubts


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("q.json", '{"version": "2.0", "data": [{"question": "A?"}]}', "the list that 'data' holds"),
        ("q.json", '{"questions": [{"question": "A?"}]}', "the list that 'questions' holds"),
        ("q.json", '{"topic": "a", "note": "b"}', "--columns question=KEY"),
        ("q.jsonl", '{\n "question": "A?"\n}\n', "in a line of its own"),
        ("q.json", '{\n "question": "A?"\n}\n{\n "question": "B?"\n}', "in a line of its own"),
        ("q.jsonl", '[{"question": "A?"}]', "name a file of one list .json"),
        ("q.txt", "question\tanswer\nA?\t1\n", "its ending '.txt' is none of"),
        ("q", "question,answer\nA?,1\n", "its ending '' is none of"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_what_to_do(tmp_path: Path, name: str, text: str, advice: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(LoadingError, match=re.escape(advice)):
        load_own_questions(file)
