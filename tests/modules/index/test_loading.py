"""Every file type, what is skipped, and what files are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from docx import Document as WordDocument
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from judgetree.modules.errors import LoadingError
from judgetree.modules.index.file_parsers import PARSERS, LoadLimits, parse_file
from judgetree.modules.index.folder_scan import SkippedFile, scan_files
from judgetree.modules.index.parsers.parsed import clean_text
from judgetree.modules.index.plan import ChunkSizes, read_changes

OF_CHUNKS = {"start_index", "chunk_id", "file_digest"}


def load(path: Path) -> tuple[list[Document], list[SkippedFile]]:
    """The documents of short files, a chunk each, and the files that could not be read."""
    plan = read_changes(scan_files(path), {}, ChunkSizes(), lambda done, total, stage: None, LoadLimits())
    for chunk in plan.chunks:
        chunk.metadata = {name: value for name, value in chunk.metadata.items() if name not in OF_CHUNKS}
    return plan.chunks, plan.skipped


def load_one(path: Path) -> Document:
    (document,), skipped = load(path)
    assert skipped == []
    return document


def write_pdf(path: Path, *pages: str) -> None:
    """A small PDF with one line of text a page, written by hand: no PDF writer is installed."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET" if text else ""
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents {number + 1} 0 R "
            f"/Resources << /Font << /F1 {font} >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    body, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    end = (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n"
    )
    path.write_text(body + end + "%%EOF\n", encoding="ascii")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_keeps_its_words_and_is_called_by_its_stem(docs: Path, encoding: str) -> None:
    (docs / "notes.txt").write_text("Grüße, 世界", encoding=encoding)
    document = load_one(docs)
    assert document.page_content == "Grüße, 世界"
    assert document.metadata == {"source": "notes.txt", "title": "notes"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_of_a_text_end_as_on_any_system(docs: Path, end: str) -> None:
    (docs / "notes.md").write_bytes(end.join(("# Herons", "", "They wait.", "They fish.")).encode())
    document = load_one(docs)
    assert document.page_content == "# Herons\n\nThey wait.\nThey fish."
    assert document.metadata["title"] == "Herons"


GERMAN = "Grüße aus München: Die Prüfung der Flansche ist jährlich zu wiederholen. Ihre Größe beträgt 40 mm.\n"
CHINESE = "第一条 为了规范阀门的检验,制定本标准。法兰的垫片应当每年更换一次。\n"


_SINGLE_MARKS = ("3×4", "£5", "±3", "½", "m²", "20 °C", "3 µm", "Peña", "Grüße", "naïve")


@pytest.mark.parametrize(
    ("text", "written", "found"),
    [
        (GERMAN, "latin-1", "cp1252"),
        ("¿Quién escribió esto? ¿Dónde vive Muñoz? " * 60, "cp1252", "cp1252"),
        *(("Which agent ran?\n" * 30 + text, "cp1252", "cp1252") for text in _SINGLE_MARKS),
        ("Le café est très agréable, déjà vu à l'été. " * 500, "latin-1", "cp1252"),
        ("Proszę wymienić uszczelkę. Żółte zawory są sprawdzane co roku, zgodnie z normą.", "cp1250", "cp1250"),
        (CHINESE, "gb18030", "gb18030"),
        ("a line in ASCII\n" * 9000 + CHINESE * 3000, "gb18030", "gb18030"),
        (CHINESE, "utf-16", "utf-16"),
        (GERMAN, "utf-16-le", "utf-16-le"),
        (GERMAN, "utf-16-be", "utf-16-be"),
        (CHINESE, "utf-32", "utf-32"),
    ],
)
def test_an_encoding_is_found_and_noted(docs: Path, text: str, written: str, found: str) -> None:
    (docs / "a.jsonl").write_bytes(json.dumps({"text": text}, ensure_ascii=False).encode(written))
    plan = read_changes(scan_files(docs), {}, ChunkSizes(size=10**6), lambda done, total, stage: None, LoadLimits())
    assert "".join(chunk.page_content for chunk in plan.chunks) == text.strip()
    assert plan.encodings == {"a.jsonl": found}
    assert plan.report({}, ignored=0).encodings == {"a.jsonl": found}


@pytest.mark.parametrize(
    ("page", "written", "found"),
    [
        (GERMAN, "cp1252", {"a.html": "cp1252"}),
        (CHINESE, "gb18030", {"a.html": "gb18030"}),
        (GERMAN, "utf-8", {}),
        (f"<meta charset=windows-1252>{GERMAN}", "cp1252", {}),
        ("plain", "ascii", {}),
    ],
)
def test_the_encoding_of_a_page_that_says_none_is_noted(
    docs: Path, page: str, written: str, found: dict[str, str]
) -> None:
    (docs / "a.html").write_bytes(f"<p>{page}</p>".encode(written))
    plan = read_changes(scan_files(docs), {}, ChunkSizes(), lambda done, total, stage: None, LoadLimits())
    assert plan.report({}, ignored=0).encodings == found


def test_a_broken_byte_does_not_make_utf_8_another_encoding(docs: Path) -> None:
    (docs / "a.txt").write_bytes(GERMAN.encode() + b"\xff" + CHINESE.encode())
    plan = read_changes(scan_files(docs), {}, ChunkSizes(), lambda done, total, stage: None, LoadLimits())
    assert GERMAN + "\ufffd" + CHINESE.strip() == plan.chunks[0].page_content
    assert plan.encodings == {"a.txt": "utf-8 (1 unreadable)"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.md", "intro\n\n## The heading ##\n\ntext\n"), ("a.htm", "<h2>The heading</h2><p>text</p>")],
)
def test_text_without_a_title_is_called_by_its_first_heading(docs: Path, name: str, text: str) -> None:
    (docs / name).write_text(text)
    assert load_one(docs).metadata["title"] == "The heading"


def test_html_loses_markup_and_scripts_but_keeps_sentences_whole(docs: Path) -> None:
    (docs / "a.html").write_text(
        "<html><head><title> A page </title><script>evil()</script></head>"
        "<body><h1>Head</h1><p>One <b>bold</b> word.</p><p>Two<br>lines</p>"
        "<table><tr><td>a</td><td>b</td></tr></table></body></html>"
    )
    document = load_one(docs)
    assert document.metadata["title"] == "A page"
    assert [line for line in document.page_content.splitlines() if line] == [
        "Head",
        "One bold word.",
        "Two",
        "lines",
        "a | b",
    ]


def test_word_gives_paragraphs_and_tables_in_order(docs: Path) -> None:
    word = WordDocument()
    word.add_paragraph("Before.")
    word.add_heading("The heading", level=1)
    table = word.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "left", "right"
    word.add_paragraph("After.")
    word.save(str(docs / "a.docx"))
    document = load_one(docs)
    assert document.page_content == "Before.\n\nThe heading\n\nleft | right\n\nAfter."
    assert document.metadata["title"] == "The heading"


def test_pdf_gives_one_document_a_page_counted_from_one(docs: Path) -> None:
    write_pdf(docs / "paper.pdf", "First page", "", "Third page")
    documents, _ = load(docs)
    assert [(document.metadata["page"], document.page_content.strip()) for document in documents] == [
        (1, "First page"),
        (3, "Third page"),
    ]
    assert {document.metadata["title"] for document in documents} == {"paper"}


def test_csv_gives_one_document_a_row(docs: Path) -> None:
    (docs / "people.csv").write_text('name,note\nAda,"first, ""really"""\nBob,\n', encoding="utf-8")
    documents, _ = load(docs)
    assert [document.page_content for document in documents] == ['name: Ada\nnote: first, "really"', "name: Bob"]
    assert [document.metadata["row"] for document in documents] == [1, 2]


def test_csv_leaves_line_ends_to_the_csv_module(docs: Path) -> None:
    (docs / "lines.csv").write_bytes('name,note\r\nAda,"one\r\ntwo"\r\nBob,a\u2028b\x0bc\rCid,x\n'.encode())
    documents, _ = load(docs)
    assert [document.page_content for document in documents] == [
        "name: Ada\nnote: one\r\ntwo",
        "name: Bob\nnote: a\u2028b\x0bc",
        "name: Cid\nnote: x",
    ]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json_gives_text_and_metadata_and_keeps_our_words_for_us(docs: Path, name: str) -> None:
    items = [{"text": "One", "title": "T", "metadata": {"year": 1999, "score": 3, "source": "x"}}, {"text": "Two"}]
    content = json.dumps(items) if name == "a.json" else "\n".join(map(json.dumps, items))
    (docs / name).write_text(content)
    (first, second), _ = load(docs)
    assert first.page_content == "One"
    assert first.metadata == {"title": "T", "year": 1999, "score_": 3, "source_": "x", "source": name}
    assert second.metadata == {"title": "a", "source": name}


def test_json_metadata_can_be_stored_whatever_it_holds(docs: Path) -> None:
    (docs / "a.json").write_text(r'{"text": "One", "title": "T\ud800", "a\udfff": ["\ud800\u0000", {"\u0000b": NaN}]}')
    document = load_one(docs)
    metadata = document.metadata
    assert (document.page_content, metadata["title"]) == ("One", "T\ufffd")
    assert list(metadata["a\ufffd"][1]) == ["b"]
    assert metadata["a\ufffd"][0] == "\ufffd"


BROKEN: dict[str, tuple[bytes, str]] = {
    "program.txt": (b"\x7fELF\x02\x01\x01" + bytes(64) + b"\xff\xfe\x80" * 9, "it is not text"),
    "noise.md": (bytes((number * 89 + 37) % 255 + 1 for number in range(900)), "it is not text"),
    "mark.txt": (b"\xff\xfea", "broken at byte 2"),
    "empty.md": (b" \n", "no text"),
    "nothing.docx": (b"", "it holds no text: the file is empty"),
    "nothing.pdf": (b"", "it holds no text: the file is empty"),
    "cut.pdf": (b"%PDF-1.4\nrubbish", "cannot be read"),
    "not.docx": (b"no zip", "cannot be read"),
    "bad.json": (b"{", "cannot be read"),
    "list.json": (b"[1]", 'object 1 is not an object with a "text" string'),
    "bad.jsonl": (b'{"text": "fine"}\nnope\n', "line 2 is not JSON"),
    "wide.csv": (b"a,b\n1,2,3\n", "row 1 has 3 fields, the header 2"),
    "empty.html": (b"<script>x</script>", "no text"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_and_the_rest_is_loaded(docs: Path, name: str) -> None:
    content, reason = BROKEN[name]
    (docs / name).write_bytes(content)
    (docs / "fine.txt").write_text("fine")
    documents, (skipped,) = load(docs)
    assert [document.metadata["source"] for document in documents] == ["fine.txt"]
    assert skipped.source == name
    assert reason in skipped.reason


def test_a_scanned_pdf_is_skipped_with_a_hint(docs: Path) -> None:
    write_pdf(docs / "scan.pdf", "")
    assert load(docs)[1][0].reason == "it holds no text"


def test_a_folder_is_read_in_order_without_hidden_files(docs: Path) -> None:
    for name in (
        *("b.txt", "sub/deep/a.txt", ".git/x.txt", ".hidden.txt", "picture.png", "sub/data.bin"),
        *("~$report.docx", "~WRL0001.tmp"),  # Word writes them beside an open file
    ):
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text("x")
    scan = scan_files(docs)
    assert [file.source for file in scan.files] == ["b.txt", "sub/deep/a.txt"]
    assert scan.ignored == 3


@pytest.mark.parametrize("wanted", [["md"], [".MD"], ["*.md"], "md"])
def test_only_wanted_types_are_read_and_the_others_counted(docs: Path, wanted: list[str]) -> None:
    for name in ("a.md", "b.txt", "c.TXT"):
        (docs / name).write_text("x")
    scan = scan_files(docs, file_type_wanted=wanted)
    assert [file.source for file in scan.files] == ["a.md"]
    assert scan.ignored == 2


def test_an_unknown_type_is_refused_with_those_allowed(docs: Path) -> None:
    with pytest.raises(LoadingError, match=r"Unknown file types: exe\. Allowed: csv, docx"):
        scan_files(docs, file_type_wanted=["md", "exe"])


@given(st.text(alphabet=st.characters(codec=None)))
def test_clean_text_can_be_stored_anywhere(text: str) -> None:
    clean = clean_text(text)
    assert "\x00" not in clean
    clean.encode("utf-8")
    assert clean_text(clean) == clean


def test_nul_characters_do_not_reach_documents(docs: Path) -> None:
    (docs / "a.txt").write_bytes(b"be\x00fore")
    assert load_one(docs).page_content == "before"


@pytest.mark.parametrize("suffix", PARSERS)
@settings(deadline=None, max_examples=50)
@given(content=st.binary(max_size=200))
def test_no_bytes_can_stop_the_parsing(suffix: str, content: bytes) -> None:
    try:
        assert all(text.strip() for text, _ in parse_file(suffix, content, LoadLimits()))
    except LoadingError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("name;price\nA;3,5\nB;4,7\n", ["name: A\nprice: 3,5", "name: B\nprice: 4,7"]),
        ("name;price, net\nA;3,5\nB;4,7\n", ["name: A\nprice, net: 3,5", "name: B\nprice, net: 4,7"]),
        ("name;a;b\nA;1,5;2,5\n", ["name: A\na: 1,5\nb: 2,5"]),
        ("name\tprice\nA\t3,5\n", ["name: A\nprice: 3,5"]),
        ("name|price\nA|3,5\n", ["name: A\nprice: 3,5"]),
        ("sep=;\nname;price\nA;3\n", ["name: A\nprice: 3"]),
        ("x,y\n1,2\n3,4\n", ["x: 1\ny: 2", "x: 3\ny: 4"]),
        ("name,price,,\nA,3,,\nB\n", ["name: A\nprice: 3", "name: B"]),
        ('name;says\nA;"x; y\nz"\n', ["name: A\nsays: x; y\nz"]),
        ("name,note; more\nA,b; c\nD,e\n", ["name: A\nnote; more: b; c", "name: D\nnote; more: e"]),
        ('\n"name", "says"\n"A", "x, y"\n', ["name: A\nsays: x, y"]),
        ("text\nno comma; none\n", ["text: no comma; none"]),
        ("name,says\nA," + "x" * 200_000 + "\n", ["name: A\nsays: " + "x" * 200_000]),
    ],
)
def test_csv_is_read_by_the_separator_that_fits(content: str, texts: list[str]) -> None:
    assert [text for text, _ in parse_file(".csv", content.encode(), LoadLimits())] == texts


def test_csv_whose_rows_fit_no_separator_says_so() -> None:
    with pytest.raises(LoadingError, match=r"row 1 has 3 fields, the header 2; commas, semicolons, tabs or \| may"):
        parse_file(".csv", b"name,says\nA,x,y\n", LoadLimits())
