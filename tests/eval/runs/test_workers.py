"""Runs over several processes of a real Ray: the rows of one process, each once, within the limits of the run."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

import pytest
from langchain_core.documents import Document

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.evaluation.rows.store import RunRow, RunStore
from judgetree.evaluation.runs.batch_run import RunOptions
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.workers import Workers
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.cluster import HERE, connected
from judgetree.modules.errors import SettingsError, UserError
from judgetree.modules.judge.contract import Verdict
from judgetree.modules.settings import load_settings
from tests.eval.dataset_files import standards_row, write_standards
from tests.eval.run_bench import RunBench

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore::ResourceWarning")]
TWO = RunOptions(workers=Workers(count=2))
QUESTIONS = 6


@pytest.fixture(scope="module")
def ray() -> Iterator[object]:
    """One Ray for the tests that ask questions, which each would start otherwise."""
    pytest.importorskip("ray")
    with connected(HERE, workers=2) as started:
        yield started


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RunBench]:
    quotes = {f"{number}.md": f"Drum {number} is {number + 3} mm thick." for number in range(QUESTIONS)}
    rows = (
        standards_row(f"q{number}", f"How thick is drum {number}?", f"{number + 3} mm", source, quote)
        for number, (source, quote) in enumerate(quotes.items())
    )
    file = write_standards(tmp_path / "data", quotes, *rows)
    with ScriptedServer(load_standards_qa(file)) as server:
        yield RunBench(
            server=server,
            settings=load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0),
            experiment=Experiment(
                dataset=f"standards:{file}", systems=("judge",), topk=2, search_type="sparse", concurrency=4
            ),
            out=tmp_path / "run",
        )


def rows_of(folder: Path) -> dict[str, RunRow]:
    rows = RunStore(folder).read_attempts()
    assert len({row.place for row in rows}) == len(rows), "none is written twice"
    return {row.question_id: row for row in rows}


def comparable(row: RunRow) -> dict[str, object]:
    """All of a row but its time, its thread and the embedder's calls, which processes share by their cache."""
    kept = asdict(replace(row, seconds=0, thread_id="", paid=None))
    if row.tree is not None:
        kept["tree"] = asdict(replace(row.tree, cached_seconds=0))
    return kept


@pytest.mark.slow
def test_no_other_user_gets_at_the_files_and_sockets_of_ray(ray: ModuleType) -> None:
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    around = session.parent.parent
    assert (around.name.startswith("judgetree-ray-"), stat.S_IMODE(around.stat().st_mode)) == (True, 0o700)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_rows_and_trees_are_those_of_one_process(bench: RunBench) -> None:
    bench.run(cache="off")
    spread = bench.out.with_name("spread")
    summary = bench.run(TWO, out=spread, cache="off")
    assert (summary.asked, summary.failed, summary.kept) == (QUESTIONS, 0, 0)
    alone, there = rows_of(bench.out), rows_of(spread)
    assert {name: comparable(row) for name, row in there.items()} == {
        name: comparable(row) for name, row in alone.items()
    }
    assert len((spread / "trees.jsonl").read_text().splitlines()) == QUESTIONS
    assert bench.run(TWO, out=spread, cache="off").kept == QUESTIONS


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_one_ledger_keeps_all_workers_within_the_limit_and_the_run_goes_on(bench: RunBench) -> None:
    stopped = bench.run(TWO, cache="off", max_calls=7)
    assert (bench.requests(), stopped.calls, stopped.stopped_by, stopped.failed) == (7, 7, "max_calls=7", 0)
    bench.run(cache="off")
    rows = rows_of(bench.out)
    assert {row.prediction for row in rows.values()} == {f"{number + 3} mm" for number in range(QUESTIONS)}
    assert sum(row.paid_llm_calls for row in rows.values()) == bench.requests(), "none is made twice, or not booked"


def pids(*which: str) -> list[str]:
    """Return the processes that ``pgrep`` finds."""
    return subprocess.run(["pgrep", *which], capture_output=True, text=True, check=False).stdout.split()


@pytest.mark.slow
def test_a_question_whose_worker_is_killed_is_asked_again_and_pays_only_what_was_in_flight(
    bench: RunBench, ray: ModuleType
) -> None:
    asked: Counter[str] = Counter()
    noting, held, killed = threading.Lock(), threading.Event(), threading.Event()

    def kill_once(request: ReceivedRequest) -> ChatReply | None:
        with noting:
            asked[str(request.prompt)] += 1
            is_fifth = asked.total() == 5
        if is_fifth:
            held.set()
            assert killed.wait(60)
        return None

    def kill() -> None:
        assert held.wait(60)
        session = ray._private.worker._global_node.get_session_dir_path()
        [raylet] = pids("-f", f"/raylet .*{session}/")
        workers = pids("-P", raylet, "-f", "^ray::Worker")
        assert workers
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        killed.set()

    bench.server.responses = kill_once
    killer = threading.Thread(target=kill)
    killer.start()
    summary = bench.run(TWO, cache="off", concurrency=2)
    killer.join()
    rows = rows_of(bench.out)
    assert (summary.asked, summary.failed, len(rows)) == (QUESTIONS, 0, QUESTIONS)
    assert {row.prediction for row in rows.values()} == {f"{number + 3} mm" for number in range(QUESTIONS)}
    again = asked.total() - len(asked)
    assert again <= 2 * 2, "two questions with two judgements each were in flight"


class OwnJudge:
    """Finds every chunk sufficient."""

    def __init__(self, field: object = "") -> None:
        self.field = field

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "own"}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        return Verdict(status="judged", score=2)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_parts_given_as_objects_are_sent_or_refused(bench: RunBench) -> None:
    assert bench.run(TWO, cache="off", judge=OwnJudge(), limit=2).failed == 0
    assert {chunk.verdict for row in rows_of(bench.out).values() for chunk in row.chunks} == {"2"}
    with pytest.raises(SettingsError, match=r"OwnJudge.* cannot be sent to workers.* import path"):
        bench.run(TWO, out=bench.out.with_name("other"), judge=OwnJudge(threading.Lock()), limit=2)


class DeadlyJudge(OwnJudge):
    """Ends the first ``deaths`` workers that open it."""

    def __init__(self, folder: Path, deaths: int) -> None:
        super().__init__()
        self.folder, self.deaths = folder, deaths

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False):
            if len(list(self.folder.iterdir())) <= self.deaths:
                os._exit(1)


@pytest.mark.slow
@pytest.mark.usefixtures("ray")
def test_a_worker_that_dies_while_it_opens_is_started_again_but_not_for_ever(bench: RunBench, tmp_path: Path) -> None:
    for name, deaths in (("one", 1), ("all", 1_000)):
        (tmp_path / name).mkdir()
        judge = DeadlyJudge(tmp_path / name, deaths)
        if deaths == 1:
            assert bench.run(TWO, cache="off", judge=judge, limit=2).failed == 0
        else:
            with pytest.raises(UserError, match="died 5 times while it opened"):
                bench.run(TWO, out=bench.out.with_name("other"), judge=judge, limit=2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"max_concurrency": 1}, "2 workers share 1 calls at once"), ({"llm": "local:"}, "one call at a time")],
)
def test_what_cannot_be_spread_is_refused_before_anything_is_asked(
    bench: RunBench, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        bench.run(TWO, settings=bench.settings.model_copy(update=changes))
    assert bench.requests() == 0
