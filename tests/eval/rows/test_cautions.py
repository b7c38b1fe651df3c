"""What must be known before the figures of a run are believed stands wherever they do."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from judgetree.evaluation.papers.tables import paper_tables
from judgetree.evaluation.reports.compare import compare_runs
from judgetree.evaluation.reports.page import write_report
from judgetree.evaluation.reports.report import load_report
from judgetree.modules.judge.gold import SEE_GOLD
from tests.eval.run_writer import RunWriter

ROOT = Path(__file__).parents[3]
SIMULATED = (
    "The judge noisy:auc=.9 is simulated: it sees the gold documents, which no judge does. Calls that a model would "
    "make in its place are counted, with estimated tokens."
)


def run_with(folder: Path, *, judge: str = "generated", **experiment: object) -> RunWriter:
    """A run of two systems on two of three questions, of which one answer failed."""
    run = RunWriter(folder, "plain")
    manifest: dict[str, Any] = dict(run.store.read_manifest() or {})
    manifest["identity"] |= {"judge": judge}
    manifest["judge"] = {"kind": judge.partition(":")[0]}
    manifest["experiment"] |= {**experiment, "systems": ["naive", "judge"]}
    run.store.write_manifest(manifest)
    for system in ("naive", "judge"):
        run.answer(system, 0, "Vell", run.chunk("Mill"))
        run.answer(system, 1, "", status="failed" if system == "naive" else "refused")
    return run


def everywhere(folder: Path) -> dict[str, str]:
    """Each text in which figures of a run stand."""
    report = load_report(folder)
    return {
        **{each.name: each.read_text() for each in write_report(folder).files if each.suffix in (".html", ".md")},
        "--json": json.dumps(report.to_document()),
        **{f"paper: {table.name}": table.caption for table in paper_tables(report)},
    }


def test_a_judge_that_sees_gold_is_told_wherever_its_figures_stand(tmp_path: Path) -> None:
    run = run_with(tmp_path, judge="noisy:auc=.9")
    assert [name for name, text in everywhere(run.folder).items() if SIMULATED not in text] == []
    assert all(each.verdict.endswith(SIMULATED) for each in compare_runs(run.folder, rows="all"))


def test_every_judge_that_is_made_of_gold_is_of_a_kind_that_sees_it() -> None:
    kinds = set()
    for file in (ROOT / "modules" / "judge").glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for each in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            made_of = {node.id for node in ast.walk(each) if isinstance(node, ast.Name)}
            if made_of & {"GoldTable", "GoldFact"}:
                kinds |= set(re.findall(r"'kind': '(\w+)'", ast.unparse(each)))
    assert kinds == SEE_GOLD


def test_other_judges_and_systems_without_one_are_not_called_simulated(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    assert [name for name, text in everywhere(run.folder).items() if "simulated" in text] == []


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"limit": 2}, "These are the first 2 of 3 questions, which may be of other kinds than the rest"),
        ({"sample": 2, "seed": 7}, "These are 2 of 3 questions, drawn by seed 7: of each kind its share."),
    ],
)
def test_questions_that_are_not_the_whole_set_are_told(tmp_path: Path, choice: dict[str, int], words: str) -> None:
    run = run_with(tmp_path, **choice)
    assert [name for name, text in everywhere(run.folder).items() if words not in text] == []


def test_captions_of_a_paper_say_what_failed_and_what_lacks(tmp_path: Path) -> None:
    run = run_with(tmp_path)
    captions = [table.caption for table in paper_tables(load_report(run.folder))]
    assert captions
    assert [each for each in captions if "Failed answers, which count in means: naive 1." not in each] == []
    assert [each for each in captions if "The run is not finished: 2 of 6 answers are missing." not in each] == []
