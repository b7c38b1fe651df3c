"""What a workbook shows: its cells, and besides them sheets, hidden rows and columns, merged cells."""

import logging
from datetime import date, datetime, time, timedelta
from pathlib import Path
from zipfile import ZipFile

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.worksheet.worksheet import Worksheet

from judgetree.evaluation.datasets.own_questions import load_own_questions
from judgetree.evaluation.datasets.questions import Dataset
from judgetree.modules.errors import LoadingError


def sheet_of(*rows: tuple[object, ...]) -> Worksheet:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for row in (("id", "question", "answer", "type"), *rows):
        sheet.append(row)
    return sheet


def read(sheet: Worksheet, folder: Path) -> Dataset:
    assert sheet.parent is not None
    sheet.parent.save(folder / "q.xlsx")
    return load_own_questions(folder / "q.xlsx")


def doubts_of(dataset: Dataset) -> str:
    assert dataset.read is not None
    return "\n".join(dataset.read.doubts)


def test_the_line_names_the_sheet_that_is_read_and_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sheet = sheet_of(("a", "Who?", "Ada", ""))
    sheet.title = "Fragen"
    sheet.parent.create_sheet("Alt").append(["question"])
    sheet.parent.create_sheet("Notes").sheet_state = "hidden"
    with caplog.at_level(logging.INFO, logger="judgetree"):
        dataset = read(sheet, tmp_path)
    assert "; a workbook, sheet 'Fragen' (not read: 'Alt', 'Notes'); columns:" in caplog.messages[0]
    assert dataset.read is not None
    document = dataset.read.to_document()
    assert (document["sheet"], document["other_sheets"]) == ("Fragen", ["Alt", "Notes"])


def test_a_hidden_first_sheet_is_not_the_one_that_is_read(tmp_path: Path) -> None:
    sheet = sheet_of(("a", "Who?", "Ada", ""))
    lists = sheet.parent.create_sheet("Lists", 0)
    lists.append(["question"])
    lists.append(["What was chosen?"])
    lists.sheet_state = "hidden"
    dataset = read(sheet, tmp_path)
    assert [each.question for each in dataset.questions] == ["Who?"]
    assert dataset.read is not None
    assert (dataset.read.sheet, dataset.read.other_sheets) == (sheet.title, ("Lists",))


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ([], "its sheet 'Cover' is empty, and 'Sheet' is not read. Move the sheet of the questions to the front"),
        (["Version 2"], "no column question; there are Version 2. .*It is the sheet 'Cover'; not read: 'Sheet'"),
    ],
)
def test_questions_on_another_sheet_are_said_to_be_there(tmp_path: Path, cells: list[str], fault: str) -> None:
    sheet = sheet_of(("a", "Who?", "Ada", ""))
    cover = sheet.parent.create_sheet("Cover", 0)
    cover.append(cells)
    with pytest.raises(LoadingError, match=fault):
        read(sheet, tmp_path)


def test_hidden_rows_and_columns_are_read_and_told(tmp_path: Path) -> None:
    sheet = sheet_of(*[(f"{n}", f"Who is {n}?", "Ada", "") for n in range(2, 9)])
    for row in (3, 5):
        sheet.row_dimensions[row].hidden = True
    sheet.column_dimensions["C"].hidden = True
    sheet.column_dimensions["F"].hidden = True
    dataset = read(sheet, tmp_path)
    assert len(dataset.questions) == 7
    assert doubts_of(dataset) == (
        "rows that the sheet hides are read: delete them if they are not meant (rows 3, 5)\n"
        "the column 'answer' is read, which the sheet hides"
    )


def test_a_cell_merged_over_rows_counts_in_each_of_them(tmp_path: Path) -> None:
    rows = [("a", "Who?", "Ada", "fact"), ("b", "Whose?", None, None), ("c", "Whom?", None, None), ("d", "Why?", "x")]
    sheet = sheet_of(*rows)
    sheet.merge_cells("C2:C4")
    sheet.merge_cells("D2:D5")
    dataset = read(sheet, tmp_path)
    assert [(each.answers, each.type) for each in dataset.questions] == [(("Ada",), "fact")] * 3 + [(("x",), "fact")]
    told = doubts_of(dataset)
    assert "cells of 'answer' are merged over rows, and count in each of them (rows 3, 4)" in told
    assert "cells of 'type' are merged over rows, and count in each of them (rows 3, 4, 5)" in told


def test_a_merged_question_is_not_asked_twice(tmp_path: Path) -> None:
    sheet = sheet_of(("a", "Who?", "Ada", ""), ("b", None, "Lady Lovelace", ""))
    sheet.merge_cells("B2:B3")
    with pytest.raises(LoadingError, match=r"row 3: its question is the cell of row 2, merged over both. Write"):
        read(sheet, tmp_path)


def test_rows_of_merged_cells_alone_are_blank(tmp_path: Path) -> None:
    sheet = sheet_of(("a", "Who?", "Ada", ""), (), ("b", "When?", "1843", ""))
    for column in "ABC":
        sheet.merge_cells(f"{column}2:{column}3")
    dataset = read(sheet, tmp_path)
    assert [each.answers for each in dataset.questions] == [("Ada",), ("1843",)]
    assert doubts_of(dataset) == ""


def test_cells_merged_over_columns_stand_in_the_first(tmp_path: Path) -> None:
    sheet = sheet_of(("a", "Who?", "Ada", ""), ("Part two", None, None, None), ("b", "When?", "1843", ""))
    sheet.merge_cells("C2:D2")
    sheet.merge_cells("A3:D3")
    with pytest.raises(LoadingError, match=r"1 of 3 rows of .*\n  row 3: its question is empty"):
        read(sheet, tmp_path)


def test_a_header_of_two_rows_is_no_question(tmp_path: Path) -> None:
    sheet = sheet_of((None, None, "gold", "kind"), ("a", "Who?", "Ada", ""))
    sheet.merge_cells("A1:A2")
    sheet.merge_cells("B1:B2")
    with pytest.raises(LoadingError, match="row 2: its question is empty"):
        read(sheet, tmp_path)


def test_a_formula_that_was_never_computed_is_found_under_any_prefix(tmp_path: Path) -> None:
    sheet = sheet_of(("a", "How many?", "=1+1", ""))
    sheet.parent.save(tmp_path / "plain.xlsx")
    with ZipFile(tmp_path / "plain.xlsx") as plain, ZipFile(tmp_path / "q.xlsx", "w") as prefixed:
        for name in plain.namelist():
            content = plain.read(name)
            if name.endswith("sheet1.xml"):
                content = content.replace(b"<", b"<x:").replace(b"<x:/", b"</x:").replace(b"xmlns=", b"xmlns:x=")
            prefixed.writestr(name, content)
    with pytest.raises(LoadingError, match="row 2: answer: its formula was never computed"):
        load_own_questions(tmp_path / "q.xlsx")


EXCEL = [
    ("007", None, "007"),
    (7, "000", "007"),
    (0.5, "0%", "50%"),
    (0.125, "0.0%", "12.5%"),
    (3, None, "3"),
    (3.0, None, "3"),
    (0.1 + 0.2, None, "0.3"),
    (3.5, "0.00", "3.50"),
    (1234.5, "#,##0.00", "1,234.50"),
    (19.99, '"$"#,##0.00_);("$"#,##0.00)', "$19.99"),
    (5, '0" kg"', "5 kg"),
    (0.5, "# ?/?", "0.5"),
    (True, None, "TRUE"),
    (date(2024, 5, 1), "DD.MM.YYYY", "2024-05-01"),
    (datetime(2024, 5, 1, 12, 30), None, "2024-05-01T12:30:00"),
    (time(12, 30), None, "12:30:00"),
    (timedelta(hours=26, minutes=3), None, "26:03:00"),
    ("3,5", None, "3,5"),
    (0, '_(* #,##0.00_);_(* \\(#,##0.00\\);_(* "-"??_);_(@_)', "0"),
]


def test_cells_of_a_workbook_are_read_as_they_are_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    book = openpyxl.Workbook()
    book.active.append(["question", "answer"])
    for row, (value, form, _) in enumerate(EXCEL, start=2):
        book.active.append([f"What is {row}?", value])
        if form:
            book.active.cell(row, 2).number_format = form
    book.save(tmp_path / "q.xlsx")
    with caplog.at_level(logging.INFO, logger="judgetree"):
        dataset = load_own_questions(tmp_path / "q.xlsx", separator="none")
    assert [each.answers for each in dataset.questions] == [(shown,) for _, _, shown in EXCEL]
    assert dataset.read is not None
    doubts = " ".join(dataset.read.doubts)
    assert "'answer' holds a date or time, written as in ISO 8601 (rows 15, 16, 17, such as '2024-05-01')" in doubts
    assert "'#,##0.00', whose marks differ by country" in doubts
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]


def test_errors_and_formulas_without_a_value_are_refused(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["question", "answer"])
    book.active.append(["Who?", "=1+1"])
    book.active.append(["When?", "#N/A"])
    book.active["B3"].data_type = "e"
    book.save(tmp_path / "q.xlsx")
    with pytest.raises(LoadingError, match=r"row 2: answer: its formula was never .*\n  row 3: answer: .* error #N/A"):
        load_own_questions(tmp_path / "q.xlsx")


def rich(*parts: tuple[str, str]) -> CellRichText:
    """A text of parts, each with its format."""
    formats = {"^": {"vertAlign": "superscript"}, "_": {"vertAlign": "subscript"}, "-": {"strike": True}, "": {}}
    return CellRichText(*(TextBlock(InlineFont(**formats[how]), text) for text, how in parts))


@pytest.mark.parametrize(
    ("cell", "answer", "is_told"),
    [
        (rich(("10", ""), ("6", "^")), "10^6", False),
        (rich(("H", ""), ("2", "_"), ("O", "")), "H_2O", False),
        (rich(("40 bar", "-"), ("50 bar", "")), "50 bar", True),
        (rich(("x", ""), ("n+1", "^"), (" & <y>", "")), "x^(n+1) & <y>", False),
        (rich(("old", "-")), "old", True),
    ],
)
def test_formats_of_parts_of_a_text_are_read_as_they_are_seen(
    tmp_path: Path, cell: CellRichText, answer: str, is_told: bool
) -> None:
    dataset = read(sheet_of(("a", "How many?", cell, ""), ("b", "Who?", "Ada", "")), tmp_path)
    assert [each.answers for each in dataset.questions] == [(answer,), ("Ada",)]
    assert ("parts that are struck through are left out of 1 cells" in doubts_of(dataset)) == is_told


def test_texts_that_are_no_xml_are_refused(tmp_path: Path) -> None:
    sheet = sheet_of(("a", "How many?", rich(("10", ""), ("6", "^")), ""))
    assert sheet.parent is not None
    sheet.parent.save(tmp_path / "whole.xlsx")
    with ZipFile(tmp_path / "whole.xlsx") as whole, ZipFile(tmp_path / "q.xlsx", "w") as cut:
        for name in whole.namelist():
            data = whole.read(name)
            cut.writestr(name, data[:-9] if "sheet1" in name else data)
    with pytest.raises(LoadingError, match="its texts are not XML that can be read"):
        load_own_questions(tmp_path / "q.xlsx")


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006"
_SHARED = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
_RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"


def test_texts_that_sheets_share_are_read_with_their_formats_and_keep_their_numbers(tmp_path: Path) -> None:
    """As Excel writes them: in a part of their own, by number; a text there may be empty."""
    sheet = sheet_of(("a", "How many?", "FIRST", ""), ("b", "Who?", "SECOND", ""))
    assert sheet.parent is not None
    sheet.parent.save(tmp_path / "inline.xlsx")
    raised = '<si><r><t>10</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>6</t></r></si>'
    shared = f'<sst xmlns="{_MAIN}/main"><si/><si></si>{raised}<si><t>Ada</t></si></sst>'
    changes = {
        "xl/worksheets/sheet1.xml": [
            (f't="inlineStr"><is><t>{text}</t></is>', f't="s"><v>{number}</v>')
            for text, number in (("FIRST", 2), ("SECOND", 3))
        ],
        "[Content_Types].xml": [
            ("</Types>", f'<Override PartName="/xl/sharedStrings.xml" ContentType="{_SHARED}"/></Types>')
        ],
        "xl/_rels/workbook.xml.rels": [
            (
                "</Relationships>",
                f'<Relationship Id="texts" Type="{_RELATED}" Target="sharedStrings.xml"/></Relationships>',
            )
        ],
    }
    with ZipFile(tmp_path / "inline.xlsx") as inline, ZipFile(tmp_path / "q.xlsx", "w") as written:
        written.writestr("xl/sharedStrings.xml", shared)
        for name in inline.namelist():
            part = inline.read(name).decode("utf-8")
            for before, after in changes.get(name, []):
                assert before in part
                part = part.replace(before, after)
            written.writestr(name, part)
    dataset = load_own_questions(tmp_path / "q.xlsx")
    assert [(each.question, each.answers) for each in dataset.questions] == [
        ("How many?", ("10^6",)),
        ("Who?", ("Ada",)),
    ]


def test_control_characters_that_a_workbook_escapes_are_characters(tmp_path: Path) -> None:
    sheet = sheet_of(("a", "How_x000D_\nmany?", "two_x000D_\nor_x0009_three_x0007_", ""))
    [question] = read(sheet, tmp_path).questions
    assert (question.question, question.answers) == ("How\nmany?", ("two\nor\tthree",))


def test_every_escaped_character_of_a_workbook_is_what_a_cell_shows(tmp_path: Path) -> None:
    """A text that looks like an escape has its own first underscore escaped, as Excel writes it."""
    sheet = sheet_of(("a", "Which_x0020_file?", "_x005F_x000D_", ""), ("b", "Who?", "a_xD83D_b_x12_c_X0041_", ""))
    first, second = read(sheet, tmp_path).questions
    assert (first.question, first.answers) == ("Which file?", ("_x000D_",))
    assert second.answers == ("a_xD83D_b_x12_c_X0041_",)
