"""A small batch run under all faults at once, torn and out of disk; ``benchmarks.eval_faults`` is a large one."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from benchmarks.eval_faults import all_faults, doubled, lost, unmarked
from benchmarks.eval_kills import SYSTEMS
from benchmarks.synthetic_qa import synthetic_questions, write_hotpotqa
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.hotpotqa import load_hotpotqa
from judgetree.evaluation.rows.store import RunRow, RunStore, newest_attempts
from judgetree.evaluation.runs.batch_run import RunOptions, run_experiment
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.modules.errors import WritingError
from judgetree.modules.settings import load_settings
from tests.file_limits import largest_file

QUESTIONS = 12


@pytest.mark.slow
def test_no_row_is_lost_or_doubled_or_damaged_without_a_mark(tmp_path: Path) -> None:
    items = synthetic_questions(QUESTIONS)
    write_hotpotqa(tmp_path / "set.json", items)
    assert len(load_hotpotqa(tmp_path / "set.json").questions) == QUESTIONS
    with ScriptedServer([item.question for item in items]) as server:
        settings = load_settings(
            llm=f"{server.base_url}#scripted", home=tmp_path / "home", embeddings="local:use", retries=0, timeout_s=0.5
        )
        given = {"dataset": f"hotpotqa:{tmp_path / 'set.json'}", "systems": SYSTEMS, "judge": "generated"}
        experiment = Experiment.model_validate({**given, "search_type": "sparse"})
        patient = settings.model_copy(update={"timeout_s": 60.0})  # only the faults' silence should run into time-outs
        run_experiment(experiment.model_copy(update={"cache": "off"}), tmp_path / "clean", settings=patient)
        clean = RunStore(tmp_path / "clean").read_rows()
        assert {row.completeness for row in clean} == {"complete"}

        server.configure(**vars(all_faults(latency_s=0.0)))
        store = RunStore(tmp_path / "faulty")
        run_experiment(experiment.model_copy(update={"limit": 3}), store.folder, settings=settings)
        torn = tear(store)
        full = (store.folder / "checkpoints.sqlite").stat().st_size
        with largest_file(full), contextlib.suppress(WritingError):
            run_experiment(experiment, store.folder, settings=settings)
            raise AssertionError("the disk was never full")
        after = store.read_attempts()
        assert not lost(torn, after)
        run_experiment(experiment, store.folder, settings=settings)
        attempts = store.read_attempts()
        assert (lost(after, attempts), doubled(attempts), len(newest_attempts(attempts))) == (0, 0, 2 * QUESTIONS)
        assert [row.place for row in unmarked(newest_attempts(attempts), clean)] == []
        assert {row.completeness for row in attempts} == {"complete", "degraded", "failed"}, "or nothing was tried"

        server.configure(faults={})
        run_experiment(experiment, store.folder, options=RunOptions(retry="incomplete"), settings=patient)
        mended = store.read_rows()
        assert [row.place for row in unmarked(mended, clean)] == []
        assert {row.completeness for row in mended} == {"complete"}


def tear(store: RunStore) -> list[RunRow]:
    """The rows that are left when a kill comes in the middle of the last one."""
    content = store.rows_file.read_bytes()
    store.rows_file.write_bytes(content[:-20])
    return store.read_attempts()
