"""What a cell of a question file may be: what is understood, and what is refused with its row and column."""

import json
import logging
import re
from pathlib import Path

import pytest

from judgetree.evaluation import load_dataset
from judgetree.evaluation.datasets.own_questions import load_own_questions
from judgetree.modules.errors import LoadingError, SettingsError


def answers_of(path: Path, **options: str) -> tuple[str, ...]:
    [question] = load_own_questions(path, **options).questions  # type: ignore[arg-type]
    return question.answers


@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        ("x | y", ("x | y",)),
        (["P(A|B)", " b ", None, ""], ("P(A|B)", "b")),
        ({"value": "x", "aliases": ["y"], "normalized_value": "z", "type": "WikipediaEntity"}, ("x", "y")),
        ({"text": ["x", "x", "y"], "answer_start": [1, 1, 5]}, ("x", "y")),
        ({"text": "x", "answer_start": 1}, ("x",)),
        ([{"answer": "x"}, {"answer": 3}], ("x", "3")),
        ("{'text': array(['x'], dtype=object), 'answer_start': array([1], dtype=int32)}", ("x",)),
        ("['x'\n 'it\\'s']", ("x", "it's")),
        ("('x', 'y')", ("x", "y")),
        ("[Decimal('1.50'), 'one and a half']", ("1.50", "one and a half")),
        ("[Decimal('NaN'), <NA>, NaT, nan, 'x']", ("x",)),
        ("[Timestamp('2020-01-01 00:00:00+0000', tz='UTC')]", ("2020-01-01 00:00:00+0000",)),
        ("[datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 12, 30)]", ("2020-01-01", "2020-01-01 12:30:00")),
        ("(datetime.time(12, 30, fold=1), PosixPath('a.md'))", ("12:30:00", "a.md")),
        ("(3, 'three')", ("3", "three")),
        ("(Decimal('1.5'),)", ("1.5",)),
        ("[datetime.date(2020, 13, 1)]", ("[datetime.date(2020, 13, 1)]",)),
        ("[int(x) for x in y]", ("[int(x) for x in y]",)),
        ("(None, 7)", ("(None, 7)",)),
        ("[0, 1]", ("[0, 1]",)),
        ("{1, 2.50}", ("{1, 2.50}",)),
        ("[2020-10-12]", ("[2020-10-12]",)),
        ("[sic]", ("[sic]",)),
        ("[0, 1)", ("[0, 1)",)),
        ("(both)", ("(both)",)),
        ("{a, b}", ("{a, b}",)),
        ("None", ("None",)),
        ("007", ("007",)),
        ("3,5", ("3,5",)),
        (True, ("True",)),
        (3.0, ("3",)),
        (0.5, ("0.5",)),
        (None, ()),
        (float("nan"), ()),
        ("", ()),
        ([], ()),
    ],
)
def test_an_answer_in_json_that_is_understood(tmp_path: Path, cell: object, answers: tuple[str, ...]) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps({"question": "Who?", "answer": cell}))
    assert answers_of(tmp_path / "q.jsonl") == answers


@pytest.mark.parametrize(
    ("column", "cell", "fault"),
    [
        ("answer", {"foo": "x"}, "answer: .* with the keys foo"),
        ("answer", {}, "answer: .* with the keys none"),
        ("answer", [{"text": "x", "correct": False}], "answer: .* with the keys text, correct"),
        ("answer", {"text": "x", "value": "y"}, "with the keys text, value"),
        ("answer", [["x", 12]], "answer: .* is a list where a text is allowed"),
        ("answer", [{"text": "x"}, "y"], "mixes objects and texts"),
        ("answer", {"text": {"en": "x"}}, "is an object where a text is allowed"),
        ("answer", {"value": "x", "aliases": {"y": 1}}, "is an object where a text is allowed"),
        ("answer", "['x', 'y", "begins like a list, but"),
        ("supporting", '[["a.md", "c.md"]', "begins like a list, but"),
        ("supporting", '[["a.md"], "c.md"', "begins like a list, but"),
        ("supporting", ["a.md", []], "has an empty list in it"),
        ("supporting", ["a.md", [{"source": ""}]], "has an empty list in it"),
        ("supporting", [["a.md", {"sauce": "b.md"}]], "is an object with the keys sauce"),
        ("supporting", ["a.md", {"text": "b.md"}], "mixes objects and texts"),
        ("answer", "['x' ... 'y']", "numpy, which left items out"),
        ("answer", float("inf"), "infinite"),
        ("Answers", {"foo": "x"}, r"answer \(column 'Answers'\)"),
        ("supporting", {"title": ["x"], "sent_id": [0]}, "supporting: .* with the keys title, sent_id"),
        ("supporting", "nan", "supporting: 'nan' is a missing value"),
        ("type", ["x"], "type: .* is a list"),
        ("id", {"$oid": "x"}, "id: .* is an object"),
        ("question", ["Who?"], "question: .* is a list"),
        ("question", {"text": "Who?"}, "question: .* is an object .* name it: --columns question=NAME$"),
        ("answer", {"en": "x"}, "--columns answer=NAME, or take none: --columns answer="),
        ("type", {"en": "x"}, "--columns type=NAME, or take none: --columns type="),
        ("supporting", [{"source": "a.md", "page": 3}], "with the keys source, page"),
        ("question", "['Who?', 'When?']", "its question .* is a list or an object"),
        ("question", "NaN", "its question is 'NaN', a missing value"),
    ],
)
def test_a_cell_that_is_no_text_is_refused_with_row_and_column(
    tmp_path: Path, column: str, cell: object, fault: str
) -> None:
    rows = [{"question": "Why?"}, {"question": "Who?", column: cell}]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(LoadingError, match=rf"q.jsonl cannot be read[^\n]*\n  row 2: .*{fault}"):
        load_own_questions(tmp_path / "q.jsonl")
    assert [number for number, _ in load_own_questions(tmp_path / "q.jsonl", skip_bad_rows=True).malformed] == [2]


@pytest.mark.parametrize(
    ("cell", "options", "answers"),
    [
        ("x|y", {}, ("x", "y")),
        (r"P(A\|B)|y", {}, ("P(A|B)", "y")),
        ("who | wc -l", {"separator": "none"}, ("who | wc -l",)),
        ("x|1;y", {"separator": ";"}, ("x|1", "y")),
        (r"C:\new\|\alpha", {}, (r"C:\new|\alpha",)),
        ('["x|y"]', {}, ("x|y",)),
        ("' '", {}, ("' '",)),
        ("x | y", {"separator": "None"}, ("x | y",)),
        ("x | y", {"separator": " NONE"}, ("x | y",)),
        (r"\|", {}, ("|",)),
        ("x | | y |", {}, ("x", "y")),
        ("|", {"separator": "none"}, ("|",)),
    ],
)
def test_a_cell_of_a_table_is_split_where_its_separator_stands(
    tmp_path: Path, cell: str, options: dict[str, str], answers: tuple[str, ...]
) -> None:
    file = tmp_path / "q.csv"
    file.write_text('question,answer\nWho?,"{}"\n'.format(cell.replace('"', '""')))
    assert answers_of(file, **options) == answers


@pytest.mark.parametrize("separator", ["  ", "\\", "x" * 21])
def test_a_separator_that_is_none_is_refused(tmp_path: Path, separator: str) -> None:
    (tmp_path / "q.csv").write_text("question\nWho?\n")
    with pytest.raises(SettingsError, match="cannot stand between answers"):
        load_own_questions(tmp_path / "q.csv", separator=separator)


def test_the_line_says_what_was_read_and_what_was_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "q.csv"
    text = "question;Antwort;supporting;Quelle;;\nWhy?;né|x;a.md;S. 1;;\nWhen? Über Übung;None;;;;\n;;;;;\n"
    file.write_text(text, encoding="cp1252")
    with caplog.at_level(logging.INFO, logger="judgetree"):
        dataset = load_own_questions(file, columns={"answer": "Antwort"})
    line, doubt = caplog.messages
    assert line == (
        f"Read {file}: 2 questions, 2 with answers, 1 with supporting files; CSV separated by semicolon in cp1252; "
        "columns: question, supporting, answer=Antwort; not used: Quelle"
    )
    assert "its encoding cp1252 is a guess" in doubt
    assert "the answer 'None' is read as this text: leave the cell empty for none (row 3)" in doubt
    assert dataset.questions[0].answers == ("né", "x")
    assert load_own_questions(file, encoding="cp1250", columns={"answer": "Antwort"}).read.doubts != ()  # type: ignore[union-attr]
    with pytest.raises(LoadingError, match="not utf-8 text"):
        load_own_questions(file, encoding="utf-8")
    for wrong in ("zip", "punycode", "latin-99"):
        with pytest.raises(SettingsError, match="is not an encoding"):
            load_own_questions(file, encoding=wrong)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", ",question,answer\n0,Who?,Ada\n1,When?,1843\n"),
        ("q.tsv", "\tquestion\tanswer\n0\tWho?\tAda\n"),
        ("q.json", '[{"": 0, "question": "Who?", "answer": "Ada"}]'),
        ("q.jsonl", '{"": "0", "question": "Who?", "answer": "Ada"}\n'),
    ],
)
def test_a_column_without_a_name_is_not_used_and_named(tmp_path: Path, name: str, content: str) -> None:
    """Such as the index that pandas writes before the columns."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    read = load_own_questions(tmp_path / name).read
    assert read is not None
    assert read.to_line().endswith("not used: (a column without a name)")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"question": ["Who?", "When?"], "answer": ["x"]}', "have 2, 1 rows"),
        ('{"question": ["Who?", "When?"], "answer": "x"}', "neither all lists nor all objects"),
        ('{"question": {"0": "Who?"}, "answer": {"1": "x"}}', "do not have the same rows"),
        ('{"data": [{"paragraphs": []}], "version": "1.1"}', "one object with the keys 'data', 'version'"),
        ('[["Who?", "x"]]', r"not an object with keys such as question and answer, but \['Who"),
        ('[{"question": "Who?", "question": "When?"}]', "the key 'question' stands twice"),
        ('{"columns": ["question", "answer"], "data": [["Who?"]]}', "row 1 of its data"),
    ],
)
def test_one_object_is_read_as_rows_or_refused(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "q.json").write_text(content)
    with pytest.raises(LoadingError, match=fault):
        load_own_questions(tmp_path / "q.json")


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("q.tsv", 'question\tanswer\n"Who\nwrote it?"\tAda\n"A" or "B"?\tx\n', "row 3 is broken"),
        ("q.csv", 'question,answer\n5,"The Wall\n6,Hamlet"\n', "row 2 holds a line break between quotes that may be"),
        ("q.tsv", 'question\tanswer\n"Who\tx\nWhen\nWhy"\ty\n', "row 2 holds a line break between quotes that may be"),
    ],
)
def test_quotes_never_make_one_question_of_two(tmp_path: Path, name: str, content: str, fault: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(LoadingError, match=fault):
        load_own_questions(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "doubt"),
    [
        (
            "q.csv",
            "question,answer\nWho wrote\nit?,Ada\n",
            "rows have fewer cells than the first: .* line break .*row 2",
        ),
        (
            "q.csv",
            "question,answer,note\nWho wrote it, and when?,Ada,\n",
            "rows have more cells than the first: .* separator",
        ),
        ("q.csv", "question,answer,type\nWho?,Ada,Unanswerable\n", "answers are left out, since the type says .*'Ada'"),
        (
            "q.csv",
            "question,answer\nWho?,[Colour(1)]\n",
            r"texts of 'answer' look like .* \(row 2, '\[Colour\(1\)\]'\)",
        ),
        ("q.csv", "question,answer\nWho?,\"('x', 'y\"\n", r"texts of 'answer' look like "),
        ("q.csv", "question,answer\nWho?,deque(['x'])\n", r"texts of 'answer' look like "),
        ("q.csv", "question,files\nWho?,[a.md]\n", r"texts of 'files' look like .* \(row 2, '\[a.md\]'\)"),
        (
            "q.jsonl",
            '{"question": "Range?", "answer": "[0, 1]"}\n',
            r"texts of 'answer' look like .* \(row 1, '\[0, 1\]'\)",
        ),
    ],
)
def test_what_may_be_meant_otherwise_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, content: str, doubt: str
) -> None:
    (tmp_path / name).write_text(content)
    load_own_questions(tmp_path / name)
    assert re.search(doubt, caplog.text)


def test_the_first_column_of_a_kind_that_is_filled_is_read_and_one_may_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    rows = [{"question": "Who?", "answer": None, "answers": ["Ada"], "source": {"page": 3}}]
    file.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(LoadingError, match=r"supporting \(column 'source'\): .* or take none: --columns supporting="):
        load_own_questions(file)
    (question,) = load_own_questions(file, columns={"supporting": ""}).questions
    assert (question.answers, question.supporting) == (("Ada",), ())


@pytest.mark.parametrize("missing", [None, "", " ", [], [None, ""], float("nan"), {"text": [], "answer_start": []}])
def test_an_answer_that_is_missing_gives_way_to_the_next_column(tmp_path: Path, missing: object) -> None:
    rows = [{"question": "Who?", "answer": missing, "gold": missing, "answers": ["Ada"]}, {"question": "?"}]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    first, second = load_own_questions(tmp_path / "q.jsonl").questions
    assert (first.answers, first.is_answerable, second.answers) == (("Ada",), True, ())


@pytest.mark.parametrize("cell", ["|", "| |", " || "])
def test_a_cell_of_separators_alone_is_refused(tmp_path: Path, cell: str) -> None:
    (tmp_path / "q.csv").write_text(f"question,answer,n\nWho?,x,1\nWhich?,{cell},2\n")
    with pytest.raises(LoadingError, match=r"row 3: answer: .* only '\|', which parts texts. Leave the cell empty for"):
        load_own_questions(tmp_path / "q.csv")


def test_an_answer_that_the_type_leaves_out_is_told_first(tmp_path: Path) -> None:
    rows = ["Who?,x | y,", "When?,[1843],", "Why?,None,", "Where?,here,unanswerable", "What?,that,Unanswerable"]
    (tmp_path / "q.csv").write_text("question,answer,type\n" + "".join(f"{row}\n" for row in rows))
    read = load_own_questions(tmp_path / "q.csv").read
    assert read is not None
    assert read.doubtful_rows == 5
    assert read.doubts[0] == (
        "answers are left out, since the type says that there is none: empty one of both (rows 5, 6, such as 'here')"
    )
    assert "split" in read.doubts[-1]


def test_the_questions_of_the_example_corpus_are_a_file_of_questions() -> None:
    """Its facts are objects with a source, which was refused."""
    data = Path(__file__).parents[3] / "data"
    own = load_own_questions(data / "standards_qa.jsonl", folder=data / "standards")
    known = load_dataset(f"standards:{data / 'standards_qa.jsonl'}")
    assert [(each.id, each.question, each.supporting, each.is_answerable) for each in own.questions] == [
        (each.id, each.question, each.supporting, each.is_answerable) for each in known.questions
    ]


def test_every_bad_row_is_listed_up_to_ten(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("question,answer\nWho?,x\n" + ",x\n" * 12)
    with pytest.raises(LoadingError) as found:
        load_own_questions(tmp_path / "q.csv")
    lines = str(found.value).splitlines()
    assert lines[0].startswith(f"12 of 13 rows of {tmp_path / 'q.csv'} cannot be read. Mend them, or leave them out:")
    assert lines[1:] == [*(f"  row {row}: its question is empty" for row in range(3, 13)), "  and 2 more"]


@pytest.mark.parametrize("separator", ",;|")
def test_headers_with_quotes_and_spaces_are_found(tmp_path: Path, separator: str) -> None:
    (tmp_path / "q.csv").write_text(f'\n"question"{separator} "answer"\n"Who, me?"{separator} "x, y; z"\n\n\n')
    [question] = load_own_questions(tmp_path / "q.csv", separator="none").questions
    assert (question.question, question.answers) == ("Who, me?", ("x, y; z",))


def test_a_cell_may_hold_a_long_context(tmp_path: Path) -> None:
    long = "x" * 15_000_000
    (tmp_path / "q.csv").write_text(f"question,answer\nWho?,{long}\n")
    assert answers_of(tmp_path / "q.csv") == (long,)
    (tmp_path / "q.csv").write_text(f"question,answer\nWho?,{long * 2}\n")
    with pytest.raises(LoadingError, match=re.escape("row 2 is broken: field larger than field limit")):
        load_own_questions(tmp_path / "q.csv")


def test_a_bar_in_json_is_asked_about_until_it_is_said_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps({"question": "Who?", "answer": "x | y"}))
    for options, answers, asks in (({}, ("x | y",), True), ({"separator": "none"}, ("x | y",), False)):
        dataset = load_own_questions(tmp_path / "q.jsonl", **options)  # type: ignore[arg-type]
        assert dataset.questions[0].answers == answers
        assert dataset.read is not None
        assert any("'|' if it parts them, none if not" in doubt for doubt in dataset.read.doubts) == asks
    assert answers_of(tmp_path / "q.jsonl", separator="|") == ("x", "y")
