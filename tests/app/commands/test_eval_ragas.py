"""``judgetree eval ragas``: a run is scored, the report shows it, and what the user can mend."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.settings import load_settings
from tests.app.conftest import Cli
from tests.eval.ragas_bench import RagasBench, chunk, row

PLAIN = (chunk("Bread is baked."), chunk("Ladders are painted grey."))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: ScriptedServer) -> Iterator[Path]:
    """A run of two systems over three questions, of which one is answered."""
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    bench = RagasBench(server=scripted, settings=load_settings(), folder=tmp_path / "run")
    bench.begin()
    bench.add(row("colour", "Grey.", "naive"), *PLAIN)
    bench.add(row("colour", "Grey.", "llm"))
    yield bench.folder


def test_run_is_scored_and_reported(cli: Cli, run: Path) -> None:
    scored = cli("eval", "ragas", str(run), "--metrics", "faithfulness,context_precision", "--json").ok()
    told = json.loads(scored.out)
    assert (told["scored"], told["failed"], told["not_applicable"], told["calls"]) == (2, 0, 2, 4)
    again = cli("eval", "ragas", str(run), "--metrics", "faithfulness")
    assert "0 scored, 0 of them in vain, 1 kept from before, 1 do not apply" in again.out

    report = cli("eval", "report", str(run)).ok()
    assert (
        "| naive | faithfulness | 1.000 (0.207 to 1.000) | 1 | 1.000 (0.207 to 1.000) | 1 |  | scripted at 127.0.0.1:"
        in report.out
    )
    assert "| llm | context_precision |  | 0 |  | 0 | 1 nothing retrieved | scripted at 127.0.0.1:" in report.out
    table = pd.read_csv(run / "results.csv").set_index("system")
    assert table.loc["naive", "ragas_context_precision"] == pytest.approx(0.5)
    assert table.loc["llm", "ragas_context_precision_missing"] == "nothing retrieved"
    document = json.loads(cli("eval", "report", str(run), "--json").out)
    means = {(each["system"], each["metric"]): each["mean"] for each in document["systems"]}
    assert means["naive", "ragas_faithfulness"] == 1.0
    assert ("llm", "ragas_faithfulness") not in means
    assert document["ragas_missing"]["llm"]["ragas_faithfulness"] == {"nothing retrieved": 1}


def test_failed_samples_end_with_1_and_say_how_to_go_on(cli: Cli, run: Path, scripted: ScriptedServer) -> None:
    scripted.responses = lambda request: ChatReply(text="I would say yes.")
    scored = cli("eval", "ragas", str(run), "--metrics", "context_recall", "--systems", "naive")
    assert scored.status == 1
    assert "--retry-failed" in scored.out
    assert "1 scoring failed" in cli("eval", "report", str(run)).out


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--metrics", "fluency"), "Allowed: faithfulness, answer_relevancy"),
        (("--systems", "ircot"), "It has: llm, naive"),
        (("--cache", "replay"), "--cache write"),
        (("--embeddings", "word2vec"), "Unknown embedding model"),
        (("--llm", "gpt"), "Unknown model"),
    ],
)
def test_user_errors_end_with_2(cli: Cli, run: Path, options: tuple[str, ...], named: str) -> None:
    cli("eval", "ragas", str(run), *options).refused(named)


@pytest.mark.slow
def test_without_the_extra_help_works_and_scoring_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['ragas'] = None; from judgetree.app.cli import main; "
        "helped = main(['eval', '--help']); sys.exit(100 * helped + main(['eval', 'ragas', 'nowhere']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'judgetree[eval]'" in done.stderr
