"""The demo corpus and its questions keep the rules that data/README.md states."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import docx
import jieba
import pytest
from bs4 import BeautifulSoup
from docx.table import Table
from pypdfium2 import PdfDocument

from judgetree.evaluation.datasets.standards_qa import Question, SupportingFact, load_standards_qa
from tests.facts import fact, question

DATA = Path(__file__).parents[2] / "data"
STANDARDS = DATA / "standards"
CHAINED = {"2hop": 2, "3hop": 3}
MAX_QUOTE_CHARS = {"en": 220, "zh": 110}

ENGLISH_STOP_WORDS = frozenset(
    """a about according after again all also an and any are as at be been before being below between both but by can
    did do does down each every for from had has have he her his how if in into is it its may more most must need no
    nor not of off on once one only or other out over per shall should so some such than that the their them then
    there these they this those to under until up upon used was were what when where which while who whom whose why
    will with within without""".split()  # noqa: SIM905
)
CHINESE_STOP_WORDS = frozenset(
    """什么 多少 哪个 哪些 哪种 哪里 怎样 如何 多久 多长 多大 多高 可以 必须 应当 应该 不得 不能 以及 或者 其中
    规定 要求 按照 根据 时候 之前 之后 以上 以下 之间""".split()  # noqa: SIM905
)
CHINESE_DESIGNATION = re.compile(
    "[A-Z]+[0-9]+[型类级号]?(?:支架|吊厢|承载索|驱动装置|制动器|螺栓|销轴|体系|钢板|程序|脂)?"
)


def read_docx(path: Path) -> str:
    """Paragraphs and table rows, in the order of the document."""
    blocks = []
    for item in docx.Document(str(path)).iter_inner_content():
        if isinstance(item, Table):
            blocks += [" | ".join(cell.text for cell in row.cells) for row in item.rows]
        else:
            blocks.append(item.text)
    return "\n\n".join(blocks)


def read_text(path: Path) -> str:
    match path.suffix:
        case ".md" | ".txt":
            return path.read_text(encoding="utf-8")
        case ".html":
            return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").get_text()
        case ".docx":
            return read_docx(path)
        case ".pdf":
            with PdfDocument(path) as document:
                return "\n".join(page.get_textpage().get_text_range() for page in document)
    raise ValueError(f"{path.name}: the corpus has md, txt, html, docx and pdf files only")


def one_spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@cache
def corpus() -> dict[str, str]:
    """Text of every document by its path below data/standards, runs of whitespace collapsed."""
    paths = sorted(path for path in STANDARDS.rglob("*") if path.is_file())
    return {path.relative_to(STANDARDS).as_posix(): one_spaced(read_text(path)) for path in paths}


FILE = DATA / "standards_qa.jsonl"
ROWS = load_standards_qa(FILE)
every_row = pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])


def stem(word: str) -> str:
    """Plural and verb endings off, so that "gaskets" counts as "gasket"."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def content_words(text: str, lang: str) -> set[str]:
    if lang == "zh":
        tokens = {token for token in jieba.lcut(text.lower()) if len(token) >= 2 and re.match(r"\w", token)}
        return tokens - CHINESE_STOP_WORDS
    return {stem(token) for token in re.findall(r"\w+", text.lower()) if token not in ENGLISH_STOP_WORDS}


def names(text: str, lang: str) -> set[str]:
    """Designations in the text, as lower-cased words.

    English: tokens with a digit and capitalised words that do not open a sentence ("Rating", "F40", "Dorsan").
    Chinese: a code together with the kind of thing that it names ("A3型支架").
    """
    if lang == "zh":
        designations = CHINESE_DESIGNATION.findall(text)
        return {token for found in designations for token in jieba.lcut(found.lower())}
    found = re.finditer(r"\w+", text)
    return {stem(m[0].lower()) for m in found if re.search(r"\d", m[0]) or (m[0][0].isupper() and is_inside(text, m))}


def is_inside(text: str, word: re.Match[str]) -> bool:
    return not re.search(r"(^|[.?!]\s)$", text[: word.start()])


def shared_words(hop: SupportingFact, row: Question, earlier: Sequence[SupportingFact]) -> set[str]:
    """Content words that a hop's question has in common with its quote, known designations left out."""
    lang = row.lang
    known = names(row.question, lang).union(*(names(other.quote, lang) for other in earlier))
    return (content_words(hop.question, lang) & content_words(hop.quote, lang)) - known


def stands_in(value: str, text: str) -> bool:
    """Whether value stands in text, letter case aside, not as a part of a longer number or Latin word."""
    return re.search(rf"(?<![0-9A-Za-z.]){re.escape(value)}(?![0-9A-Za-z])", text, re.IGNORECASE) is not None


def test_the_corpus_has_all_formats_and_both_languages() -> None:
    languages = Counter(name.split("/")[0] for name in corpus())
    formats = Counter(Path(name).suffix for name in corpus())
    assert languages.keys() == {"en", "zh"}
    assert languages["en"] >= 30
    assert languages["zh"] >= 10
    assert languages.total() >= 40
    assert formats.keys() == {".md", ".txt", ".html", ".docx", ".pdf"}
    assert formats[".pdf"] >= 3


def test_no_document_is_empty_or_broken() -> None:
    for name, text in corpus().items():
        low, high = (1400, 4000) if name.startswith("en/") else (600, 2000)
        assert low <= len(text) <= high, (name, len(text))
        assert "\ufffd" not in text, name


def test_every_designation_that_is_referred_to_exists() -> None:
    defined = {one_spaced(Path(name).stem.upper())[: 6 if name.startswith("en/") else 5] for name in corpus()}
    referred = {found for text in corpus().values() for found in re.findall(r"KV-\d{3}|YL\d{3}", text)}
    assert referred <= defined


def test_there_are_enough_questions_of_every_type() -> None:
    count = Counter((row.lang, row.type) for row in ROWS)
    assert len(ROWS) >= 60
    assert {kind for _, kind in count} == {"single", "2hop", "3hop", "compare", "unanswerable"}
    assert all(count[lang, kind] >= 3 for lang in ("en", "zh") for _, kind in count)


def test_ids_and_questions_are_unique() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)
    assert len({row.question for row in ROWS}) == len(ROWS)


def test_every_row_has_exactly_the_documented_keys() -> None:
    for row in map(json.loads, FILE.read_text(encoding="utf-8").splitlines()):
        assert row.keys() == Question.__dataclass_fields__.keys()
        for hop in row["supporting"]:
            assert hop.keys() - {"remaining_question"} == {"source", "quote", "question", "answer"}
        assert row["id"].startswith(f"{row['lang']}-{row['type']}-")


@every_row
def test_quotes_stand_in_their_sources_and_hold_the_hop_answers(row: Question) -> None:
    for hop in row.supporting:
        assert hop.source.startswith(f"{row.lang}/")
        assert hop.quote in corpus()[hop.source]
        assert len(hop.quote) <= MAX_QUOTE_CHARS[row.lang]
        assert hop.answer.lower() in hop.quote.lower()


@every_row
def test_no_single_document_holds_all_that_is_needed(row: Question) -> None:
    quotes = [hop.quote for hop in row.supporting]
    if row.type in ("single", "unanswerable"):
        return
    assert not [name for name, text in corpus().items() if all(quote in text for quote in quotes)]
    if row.type in CHAINED:
        start = names(row.question, row.lang)
        for name, text in corpus().items():
            with_start = start <= {word.lower() for word in names("x " + text, row.lang)}
            assert not (with_start and stands_in(row.answer, text)), name
        for hop in row.supporting[:-1]:
            assert not stands_in(row.answer, corpus()[hop.source]), hop.source


@every_row
def test_a_hop_question_shares_only_known_designations_with_its_quote(row: Question) -> None:
    for position, hop in enumerate(row.supporting):
        assert not shared_words(hop, row, row.supporting[:position]), hop.question


@every_row
def test_the_supporting_list_has_the_shape_of_its_type(row: Question) -> None:
    hops = row.supporting
    assert len(hops) == {"single": 1, "compare": 2, "unanswerable": 0, **CHAINED}[row.type]
    if row.type not in CHAINED:
        assert not any(hop.remaining_question for hop in hops)
        return
    assert row.answer == hops[-1].answer
    assert hops[-2].remaining_question == hops[-1].question
    for hop, following in pairwise(hops):
        assert hop.answer in following.quote
        assert hop.answer in hop.remaining_question


@every_row
def test_a_three_hop_chain_asks_on_without_the_second_bridge(row: Question) -> None:
    if row.type == "3hop":
        first, second, last = row.supporting
        assert first.remaining_question not in (second.question, last.question)
        assert not stands_in(second.answer, first.remaining_question)


@every_row
def test_questions_do_not_give_their_answers_away(row: Question) -> None:
    for value in filter(None, [row.answer, *row.aliases]):
        assert not stands_in(value, row.question)
    for hop in row.supporting:
        assert not stands_in(hop.answer, hop.question)
        if hop.remaining_question:
            assert not stands_in(row.answer, hop.remaining_question)


@every_row
def test_only_unanswerable_questions_have_no_answer(row: Question) -> None:
    assert (row.answer == "") == (not row.supporting) == (row.type == "unanswerable")


def test_a_shared_word_is_found_and_a_known_designation_is_not() -> None:
    hop = fact("", "A Type F40 flange is sealed with Dorsan.", "Which seal does a Type F40 joint have?", "")
    assert shared_words(hop, question("", "How hot may Type F40 be?", ""), ()) == {"seal"}
    assert shared_words(hop, question("", "How hot?", ""), ()) == {"seal", "type", "f40"}


def test_a_shared_chinese_word_is_found() -> None:
    hop = fact("", "YL541规定总膜厚平均达到260微米。", "YL541的平均厚度是多少？", "")
    assert shared_words(hop, question("", "YL541有多厚？", "", lang="zh"), ()) == {"平均"}
