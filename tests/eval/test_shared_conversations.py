"""Dialogues of one run by several real processes over a Milvus server and PostgreSQL: one process a dialogue."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.wire import ChatRequest
from judgetree.evaluation.rows.store import RunStore
from tests.app.talks import THICKNESS
from tests.eval.dialogue_bench import FORK, LINE, TURNS, facts, opened, turn
from tests.eval.test_shared_run import command_of, ended, worker
from tests.modules.conftest import LiteServer


class Gate:
    """Holds the first request about the second turn of a dialogue until ``opened``."""

    def __init__(self) -> None:
        self._noting = threading.Lock()
        self._held = False
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, request: ChatRequest) -> ChatReply | None:
        with self._noting:
            holds = not self._held and any(THICKNESS in text for _, text in request.messages)
            self._held |= holds
        if holds:
            self.reached.set()
            self.opened.wait(120)
        return None


def test_dialogue_of_a_killed_process_is_gone_on_with_by_the_other(
    tmp_path: Path, lite_server: LiteServer, postgres_url: str
) -> None:
    with (
        opened(tmp_path) as bench,
        command_of(
            bench.settings.llm,
            bench.experiment.dataset,
            bench.out,
            lite_server,
            postgres_url,
            home=bench.settings.home,
        ) as run,
    ):
        bench.server.responses = gate = Gate()
        with worker(run) as victim:
            assert gate.reached.wait(120), "the first process never came to a second turn"
            begun = {row.question_id: facts(row) for row in RunStore(bench.out).read_rows()}
            victim.kill()
            victim.wait()
            gate.opened.set()
        with worker(run) as one, worker(run) as other:
            summaries = [ended(one), ended(other)]
        assert sum(int(str(summary["asked"])) for summary in summaries) == TURNS - len(begun)
        rows = RunStore(bench.out).read_attempts()
        assert Counter(row.question_id for row in rows) == {
            turn(dialogue, number): 1 for dialogue, turns in ((LINE, 5), (FORK, 4)) for number in range(1, turns + 1)
        }
        assert {row.status for row in rows} == {"answered", "refused"}
        assert list(begun) == [turn(LINE, 1)]
        names = {facts(row).conversation for row in rows if facts(row).dialogue_id == LINE}
        assert names == {begun[turn(LINE, 1)].conversation}
