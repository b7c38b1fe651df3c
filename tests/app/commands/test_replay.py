"""``judgetree eval record`` and ``judgetree replay``: searches recorded once, then compared without a model call."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, Cli, write_corpus
from tests.eval.dataset_files import write_lines


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    write_corpus(tmp_path / "data" / "standards")
    return f"standards:{write_lines(tmp_path / 'data', asdict(CHAIN), name='qa.jsonl')}"


def record(cli: Cli, data: str, folder: Path, *options: str) -> dict[str, object]:
    given = ("--dataset", data, "--judge", "generated", "--topk", "1", "--depth", "1", *options)
    return dict(json.loads(cli("eval", "record", str(folder), *given, "--json").ok().out))


def test_a_replay_as_table_page_plots_and_data(cli: Cli, data: str, tmp_path: Path, scripted: ScriptedServer) -> None:
    folder, page, plots, csv = (tmp_path / name for name in ("recorded", "page.html", "plots", "rows.csv"))
    assert record(cli, data, folder)["questions"] == 1
    paid = scripted.requests.total()
    options = ("--policy", "breadth", "--policy", "random", "--budget", "2,12", "--csv", str(csv))
    told = cli("replay", str(folder), *options, "--html", str(page), "--plots", str(plots)).ok()
    assert "No difference from breadth in evidence complete was shown at any budget." in told.out
    assert scripted.requests.total() == paid
    rows = pd.read_csv(csv)
    # By hand: the chunk is judged and the reader's call kept back (2); its sub-question takes as many again.
    assert [*zip(rows["budget"], rows["calls"], rows["complete"], rows["recall"], strict=True)] == [
        (2, 2, False, 0.5),
        (12, 4, True, 1.0),
    ] * 2
    # Of 12 calls, 2 find nothing, 2 have one of two documents, and 8 both.
    assert list(rows[rows["budget"] == 12]["area"]) == pytest.approx([(0.5 * 2 + 1.0 * 8) / 12] * 2)
    assert sorted(file.name for file in plots.iterdir()) == [
        f"replay-{score}.{kind}" for score in ("complete", "recall") for kind in ("pdf", "svg")
    ]
    drawn = page.read_text(encoding="utf-8")
    assert "No policy asked what was not recorded." in drawn
    assert 'id="plot-replay-recall"' in drawn
    assert "http" not in drawn.replace("http://www.w3.org", "").replace("http-equiv", "")
    document = json.loads(cli("replay", str(folder), *options, "--json").ok().out)
    assert [(row["policy"], row["budget"], row["complete"]) for row in document["summary"]] == [
        *(("breadth", 2, 0.0), ("random", 2, 0.0), ("breadth", 12, 1.0), ("random", 12, 1.0))
    ]
