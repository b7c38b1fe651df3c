"""Figures of a judge by labels, as the report shows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.calibration.judge_figures import auc
from judgetree.evaluation.calibration.labelled_figures import _auc, labelled_figures
from judgetree.evaluation.labels.judgements import read_judgements
from judgetree.evaluation.labels.labelling import Labelling
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.rows.trees import TreeStore
from judgetree.modules.judge.contract import Score
from tests.eval.run_writer import QUESTIONS, RunWriter
from tests.eval.training.test_export import Mill
from tests.html_pages import part, unpacked


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The judge said 1, 2, 0 to the mill for the three questions, and 2 to the weir; three of the four are labelled."""
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "run"
    folder.mkdir()
    RunWriter(folder, "plain").fill("plain")
    scores: dict[str, Score] = {QUESTIONS[0]: 1, QUESTIONS[1]: 0, "What of plain": 1}
    work = Labelling(folder, "ada")
    for passage in work.passages:
        if passage.query in scores:
            work.save(passage.id, scores[passage.query])
    return folder


def test_each_verdict_counts_by_its_share_in_the_run(run: Path) -> None:
    figures = labelled_figures(RunStore(run).read_rows(), TreeStore(run), read_judgements(run).settled)
    assert list(figures) == ["judge"]
    told = figures["judge"]
    assert (told.passages, told.questions) == (3, 3)
    assert told.counts["2"] == {0: 1, 1: 0, 2: 0}
    # The 2 stands for two passages, one of which nobody labelled.
    assert told.same.value == pytest.approx(1 / 4)
    assert told.kept is not None
    assert told.kept.value == pytest.approx(1 / 2)
    assert told.kappa is not None
    # Seen 1/4; by chance (1/4 * 2/4 for 0) + (1/4 * 2/4 for 1) + (2/4 * 0 for 2) = 1/4.
    assert told.kappa.value == pytest.approx(0.0)
    assert told.same.low is not None
    assert told.auc is None, "this judge gives no probability"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=12))
def test_auc_weighs_and_without_weights_is_that_of_the_report(passages: list[tuple[bool, int]]) -> None:
    rows = np.array([(0.0, float(needed), 1.0, p / 5) for needed, p in passages])
    gold, others = ([p / 5 for needed, p in passages if needed is side] for side in (True, False))
    if not gold or not others:
        assert _auc(rows) is None
        return
    assert _auc(rows) == pytest.approx(auc(gold, others))
    heavier = rows.copy()
    heavier[0, 2] = 2.0
    assert _auc(heavier) == pytest.approx(_auc(np.concatenate([rows, rows[:1]])))


def test_without_labels_no_tree_is_read(run: Path) -> None:
    assert labelled_figures(RunStore(run).read_rows(), TreeStore(run / "nowhere"), ()) == {}


def test_the_report_has_a_section(run: Path) -> None:
    report = load_report(run)
    text = report.to_markdown()
    assert "## Labels by hand" in text
    assert "- ada: 3 passages (2 × 1, 1 × 0)" in text
    assert "| verdict of judge | label 0 | label 1 | label 2 |" in text
    assert "needed passages kept 0.500" in text
    judged = report.to_document()["labelled_judges"]
    assert isinstance(judged, dict)
    assert judged["judge"]["passages"] == 3
    (run / "labels.jsonl").unlink()
    assert "Labels by hand" not in load_report(run).to_markdown()


def test_the_page_marks_what_was_labelled_as_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    writer = Mill(tmp_path / "run")
    writer.fill()

    def marks() -> dict[str, str]:
        packs = part(writer.page().read_text(encoding="utf-8"), "trees")
        assert isinstance(packs, list)
        [tree] = unpacked(packs[0])  # type: ignore[misc]
        return {dict(chunk["metadata"])["document_key"]: chunk["gold"] for chunk in tree["chunks"]}

    before = marks()
    work = Labelling(writer.folder, "ada")
    for passage in work.passages:
        if passage.chunk_id == "other 3":
            work.save(passage.id, 1)
    assert (before["other 3"], marks()) == ("", {**before, "other 3": "fact"})
