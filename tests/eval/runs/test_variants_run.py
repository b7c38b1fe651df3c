"""One run of several systems of one kind, each with options of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree import Verdict
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.evaluation.reports.compare import compare_runs
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.rows.cautions import simulated_judge
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.worker import _texts_of_variants
from judgetree.modules.errors import SettingsError
from judgetree.modules.parts import export_objects
from judgetree.modules.settings import load_settings
from tests.eval.dataset_files import standards_row, write_standards
from tests.eval.run_bench import RunBench

QUOTES = {
    "a.md": "Ladders of the north hall are painted grey.",
    "b.md": "Ladders of the south hall stand open.",
    "c.md": "Ladders of the west hall are locked.",
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RunBench]:
    rows = [standards_row(name, f"Which ladders does {name} name?", "grey", name, QUOTES[name]) for name in QUOTES]
    file = write_standards(tmp_path / "data", QUOTES, *rows)
    with ScriptedServer(load_standards_qa(file)) as server:
        yield RunBench(
            server=server,
            settings=load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0),
            experiment=Experiment(dataset=f"standards:{file}", systems=("naive",), topk=1, search_type="sparse"),
            out=tmp_path / "run",
        )


class Strict:
    """Judges by a word, without a model."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "strict"}

    async def judge(self, query: str, chunk: object, *, meter: object, expand: bool = True) -> Verdict:
        return Verdict(status="judged", score=2 if "grey" in str(chunk) else 0)


def test_each_variant_searches_and_judges_by_its_own_options(bench: RunBench) -> None:
    systems = [
        "naive",
        {"naive": {"topk": 3}},
        {"judge": {"judge": "noisy", "topk": 2}},
        {"judge": {"judge": Strict()}},
    ]
    summary = bench.run(systems=systems)
    assert (summary.asked, summary.failed) == (12, 0)
    rows = RunStore(bench.out).read_rows()
    shown = {row.system: {len(row.chunks)} for row in rows}
    assert shown.keys() == {"naive", "naive(topk=3)", "judge(topk=2; judge=noisy)", *filter(_is_own, shown)}
    assert {row.system: len(row.chunks) for row in rows if row.system.startswith("naive")} == {
        "naive": 1,
        "naive(topk=3)": 3,
    }
    simulated = [row for row in rows if row.system == "judge(topk=2; judge=noisy)"]
    assert {sum(usage.calls for usage in row.uncached_chat_usage) for row in simulated} == {3}
    assert {row.paid_llm_calls + row.cached_llm_calls for row in simulated} == {1}, (
        "the reader's, paid or out of the cache"
    )
    assert sum(row.paid_llm_calls for row in rows) == bench.requests(), "booked calls are not paid"
    manifest = RunStore(bench.out).read_manifest() or {}
    assert simulated_judge(manifest, "judge(topk=2; judge=noisy)") == "noisy"
    assert not any(simulated_judge(manifest, label) for label in ("naive", *filter(_is_own, shown)))
    text = load_report(bench.out).to_markdown()
    assert "naive(topk=3)" in text
    assert "The judge noisy is simulated" in text
    assert bench.run(systems=systems).asked == 0, "the same command finds all there"
    bench.run(systems=["naive(topk=2)"])
    assert len(RunStore(bench.out).read_rows()) == 15, "systems may be added"
    assert {each.a for each in compare_runs(bench.out, baseline="naive(topk=3)")} >= {"naive", "naive(topk=2)"}


def test_workers_are_given_the_objects_among_the_options() -> None:
    judge = Strict()
    systems = Experiment(dataset="x:y", systems=["naive(topk=2)", {"judge": {"judge": judge, "topk": 2}}]).systems
    parts = export_objects({*_texts_of_variants(systems)})
    assert [*parts.values()] == [judge]
    assert "Strict(" in next(iter(parts)), "whose name has the digest of its fields"


def _is_own(label: str) -> bool:
    return "Strict" in label


def test_a_judge_that_sees_gold_needs_gold_as_an_option_too(bench: RunBench, tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("question,answer\nWhich hall is grey?,north\n", encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(QUOTES["a.md"], encoding="utf-8")
    with pytest.raises(SettingsError, match="gold"):
        bench.run(dataset=f"questions:{file}", corpus=f"{tmp_path}/docs", systems=[{"judge": {"judge": "noisy"}}])
