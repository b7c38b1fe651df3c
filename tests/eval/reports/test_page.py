"""The page of a run: without a browser what it carries and its locks, with one what a reader sees."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree.evaluation.reports.page import write_report
from tests.browser import elements_of, needs_browser, width_of
from tests.eval.run_writer import QUESTIONS, RunWriter
from tests.html_pages import Elements, allow_own_script_and_style_alone, ask_nothing_outside, part, unpacked


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No prices of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGETREE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run whose every text is an attack."""
    return RunWriter(tmp_path_factory.mktemp("run")).write()


@pytest.fixture
def page(written: Path) -> str:
    return written.read_text(encoding="utf-8")


def test_page_asks_for_nothing_outside_itself(page: str) -> None:
    ask_nothing_outside(page, "http://www.w3.org/1999/xlink")


def test_policy_allows_this_script_and_style_alone(page: str) -> None:
    allow_own_script_and_style_alone(page)


def test_text_never_becomes_markup(tmp_path: Path, page: str) -> None:
    # The text is the wrong answer to a question here and there, so that all scores are the same.
    plain = RunWriter(tmp_path, "plain").write("a plain thing").read_text(encoding="utf-8")
    assert [tag for tag, _ in Elements(page).tags] == [tag for tag, _ in Elements(plain).tags]


def test_same_run_makes_the_same_page(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    first = writer.write().read_bytes()
    assert writer.page().read_bytes() == first


def test_page_carries_every_question_with_its_answers_trees_and_gold(page: str) -> None:
    index, texts = part(page, "index"), unpacked(part(page, "texts"))
    assert isinstance(index, dict)
    first, second, third = index["questions"]
    assert [question["id"] for question in index["questions"]] == ["q1", "q2", "q3"]
    assert (first["gold"], first["hops"], first["fired"], second["fired"]) == (["Vell"], 2, True, False)
    assert [(answer["system"], answer["em"], answer["failure"]) for answer in first["answers"]] == [
        ("naive", 0.0, "retrieval_miss"),
        ("judge", 1.0, None),
    ]
    assert [answer["failure"] for answer in third["answers"]] == ["failed_run", "judge_false_0"]

    trees = part(page, "trees")
    assert isinstance(trees, list)
    naive, judge = unpacked(trees[0])
    mill = judge["chunks"][0]
    assert texts[mill["text"]].startswith("Mill")
    assert (mill["gold"], mill["label"]) == ("fact", "1")
    assert mill["sub_runs"][0]["chunks"][0]["label"] == "2"
    assert naive["chunks"][0]["text"] == mill["text"], "a text stands there once"
    assert len(texts) == 2


def test_tables_say_systems_comparisons_splits_and_failures(page: str) -> None:
    seen = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page[: page.index('type="application/json"')])).split())
    assert "hotpotqa: naive, judge" in seen
    assert "questions 3 of 3" in seen
    assert "2025-03-01" in seen
    assert "No difference in EM was shown" in seen
    assert re.search(r"Primary outcome: EM, corrected for 1\. Others, corrected together for \d: F1, ", seen)
    assert "judge right, naive wrong : 1" in seen
    assert "naive right, judge wrong : 0" in seen
    assert re.search(r"Recursion n naive EM .*did not fire 2 .*fired 1 ", seen)
    assert re.search(r"all errors 2 1 ", seen)
    for title in ("Latency", "By kind of question", "Verdicts against gold", "Failure kinds"):
        assert f"<h3>{title}</h3>" in page


def test_failure_links_lead_to_their_questions(page: str) -> None:
    links = {attrs["href"] for tag, attrs in Elements(page).tags if tag == "a"}
    assert "#system=naive&outcome=retrieval_miss" in links
    assert "#right=judge&wrong=naive" in links


def test_row_whose_tree_was_not_kept_says_so(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.write()
    (tmp_path / "trees.jsonl").unlink()
    page = writer.page().read_text(encoding="utf-8")
    trees = part(page, "trees")
    assert isinstance(trees, list)
    assert [unpacked(pack) for pack in trees] == [[None, None]] * 3


def test_run_of_one_system_and_one_question_has_a_page(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.answer("llm", 0, "Vell")
    page = writer.page().read_text(encoding="utf-8")
    assert "<p>One system.</p>" in page
    assert "No wrong answer" in page
    assert "has no kinds of questions" in page


@pytest.mark.slow
def test_all_pairs_are_a_matrix_and_a_baseline_is_a_list(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for number in range(3):
        writer.answer("llm", number, "wrong")
    against_one = writer.write().read_text(encoding="utf-8")
    assert "row less column" not in against_one
    write_report(tmp_path, baseline="all")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r"<th>(\w+), row less column</th><th>llm</th><th>naive</th><th>judge</th>", page) == ["EM"]
    assert "<tr><td>judge</td><td>+66.7" in page
    assert "after Holm&#x27;s correction for 3 comparisons by the primary outcome" in page
    assert re.search(r"<summary>\d+ comparisons in words</summary>", page)


def listed(dom: str) -> list[str]:
    """The questions that are not hidden."""
    items = re.findall(r'<details class="question"([^>]*)><summary><span class="asked">(.*?)</span>', dom)
    shown = [asked for attributes, asked in items if "hidden" not in attributes]
    return [html.unescape(asked.replace("<mark>", "").replace("</mark>", "")) for asked in shown]


@pytest.mark.slow
@needs_browser
def test_tables_scroll_and_nothing_else_reaches_over_the_edge_of_a_narrow_window(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    for system in ("llm", "ircot", "iter_retgen", "self_ask"):
        for number in range(3):
            writer.answer(system, number, "wrong")
    writer.write()
    write_report(tmp_path, baseline="all")
    fit = width_of(tmp_path / "report.html", tmp_path, window=400)
    assert fit.over == []
    assert fit.width <= 400
    assert fit.scrolling >= 3


@needs_browser
@pytest.mark.slow
def test_browser_lists_the_questions_and_runs_nothing_of_their_text(written: Path) -> None:
    dom = elements_of(written, address="#open=q3")
    assert len(listed(dom)) == 3
    assert ">3 questions</output>" in dom
    assert "<title>owned</title>" not in dom
    assert not re.search(r"<img\b", dom)
    assert "it broke" in dom


@needs_browser
@pytest.mark.slow
def test_browser_opens_a_question_to_its_chunks_gold_and_tree(written: Path) -> None:
    dom = elements_of(written, address="#open=q1")
    assert "<strong>Vell</strong>" in dom
    assert "retrieval miss" in dom[dom.index('class="body"') :]
    assert "judge: search tree" in dom
    opened = dom[dom.index("judge: search tree") :]
    assert '<span class="badge">1</span><span class="badge gold">gold</span>' in opened
    assert "Where is the weir?" in opened
    assert '<span class="badge">2</span><span class="badge gold">gold</span>' in opened


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("#right=judge&wrong=naive", [0]),
        ("#system=judge&outcome=judge_false_0", [2]),
        ("#system=naive&outcome=refused", [0]),
        ("#type=comparison", [1]),
        ("#recursion=yes", [0]),
        ("#search=%E7%A3%A8%E5%9D%8A", [1]),
        ("#search=nowhere", []),
    ],
)
def test_browser_filters_by_the_address(written: Path, address: str, found: list[int]) -> None:
    dom = elements_of(written, address=address)
    assert listed(dom) == [QUESTIONS[number] for number in found]
    assert f">{len(found)} of 3 questions</output>" in dom
