"""The command line as a process: signals, pipes, locks, and what it imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, COLLECTION, Cli, command, new_thread

TIMEOUT_S = 120


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "judgetree.app", "--help"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert not imported & {"langgraph", "langchain_core", "langchain_openai", "pymilvus", "pandas", "numpy", "openai"}
    assert "demo" in done.stdout


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_stream_fails_no_command(closed: str) -> None:
    line = f"exec {sys.executable} -m judgetree.app config {closed}"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert done.stderr == ""
    assert ("max_rec_depth" in done.stdout) == (closed == "2>&-")


def test_output_that_a_full_device_refuses_is_said_in_a_sentence() -> None:
    line = f"exec {sys.executable} -m judgetree.app config > /dev/full"
    done = subprocess.run(["/bin/sh", "-c", line], check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 1
    assert done.stderr.startswith("The output could not be written: No space left on device.")


def test_what_is_spelled_out_for_quick_help_is_as_in_the_library(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from typing import get_args

    from judgetree.app.commands import options
    from judgetree.app.commands.eval.compare import RowChoiceName
    from judgetree.app.commands.eval.ragas import MetricNames
    from judgetree.app.commands.eval.run import RetryName
    from judgetree.app.commands.export import TrainingFormatName, WhatName
    from judgetree.app.server.runs import comparison
    from judgetree.evaluation.ragas.metrics import MetricName
    from judgetree.evaluation.reports.compare import RowChoice
    from judgetree.evaluation.runs.jobs import Retry
    from judgetree.evaluation.training.examples import TrainingFormat
    from judgetree.evaluation.training.kinds import What
    from judgetree.graphs.drawing.dot import Direction
    from judgetree.graphs.systems.registry import SYSTEMS
    from judgetree.modules.config.retrieval import SearchType
    from judgetree.modules.index.chunking import CHUNK_OVERLAP, CHUNK_SIZE
    from judgetree.modules.judge.factory import JudgeKind
    from judgetree.modules.retriever.search import SEARCH_TYPES

    assert get_args(options.DirectionName) == get_args(Direction)
    assert get_args(MetricNames) == get_args(MetricName)
    assert get_args(RetryName) == get_args(Retry)
    assert get_args(RowChoiceName) == get_args(comparison.RowChoiceName) == get_args(RowChoice)
    assert (get_args(WhatName), get_args(TrainingFormatName)) == (get_args(What), get_args(TrainingFormat))
    assert set(get_args(SearchType)) == set(SEARCH_TYPES)
    monkeypatch.setenv("COLUMNS", "200")
    asked = cli("ask", "--help").out
    assert all(name in asked for name in (*SYSTEMS, *get_args(JudgeKind)))
    shown = cli("index", "--help").out
    assert f"{CHUNK_SIZE} in a new one" in shown
    assert f"{CHUNK_OVERLAP} in a new one" in shown


def test_the_end_of_a_command_looks_for_no_cycles() -> None:
    """Python searched all that was loaded for them, which took a CPU second after Ctrl-C."""
    script = (
        "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0)); "
        "from judgetree.app.cli import main; main(['--version'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert done.stdout.splitlines()[-1] == "True"


@pytest.mark.slow
def test_ctrl_c_ends_with_130_and_the_way_to_go_on(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    thread = new_thread()
    scripted.configure(latency_s=3600)
    process = subprocess.Popen(
        command("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert scripted.wait_for_active(1, TIMEOUT_S)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out) == (130, "")
    assert f"judgetree ask --resume --thread-id {thread}" in err
    assert "Traceback" not in err
    scripted.configure(latency_s=0)
    resumed = cli("ask", "--resume", "--thread-id", thread)
    assert (resumed.status, resumed.out) == (0, "40 mm\n")


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_quietly(home: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        command("threads", "--json"),
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
def test_a_database_that_another_process_holds_is_shared(cli: Cli, home: Path) -> None:
    holding = "import sys; from judgetree.modules.index.connection import connect; connect(sys.argv[1]); "
    holder = subprocess.Popen(
        [sys.executable, "-c", f"{holding}print('held', flush=True); input()", str(home / "milvus.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        cli("ask", CHAIN.question, "-c", COLLECTION).ok()
    finally:
        holder.communicate("\n", timeout=TIMEOUT_S)
