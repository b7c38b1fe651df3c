"""``judgetree eval record`` and ``judgetree replay``: searches recorded once, then compared without a model call."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.storage.file_locks import lock_folder
from tests.app.commands.test_eval_calibrate import write_mills
from tests.app.conftest import CHAIN, Cli, Dam, killed, write_corpus
from tests.eval.dataset_files import write_lines


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    write_corpus(tmp_path / "data" / "standards")
    return f"standards:{write_lines(tmp_path / 'data', asdict(CHAIN), name='qa.jsonl')}"


def record(cli: Cli, data: str, folder: Path, *options: str) -> dict[str, object]:
    given = ("--dataset", data, "--judge", "generated", "--topk", "1", "--depth", "1", *options)
    return dict(json.loads(cli("eval", "record", str(folder), *given, "--json").ok().out))


def test_own_questions_are_recorded_over_a_corpus(cli: Cli, data: str, tmp_path: Path) -> None:
    """The command took --questions, and asked for a --corpus that it did not take."""
    (tmp_path / "mine.csv").write_text(f"question,answer\n{CHAIN.question},40 mm\n", encoding="utf-8")
    command = ("eval", "record", str(tmp_path / "own"), "--questions", str(tmp_path / "mine.csv"), "--depth", "0")
    cli(*command).refused("Name a collection or a folder: --corpus NAME")
    told = cli(*command, "--corpus", str(tmp_path / "data" / "standards"), "--json").ok()
    assert json.loads(told.out)["questions"] == 1


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
    assert (document["depth"], document["width"]) == (1, None), "as recorded, and as eval run"
    assert [(row["policy"], row["budget"], row["complete"]) for row in document["summary"]] == [
        *(("breadth", 2, 0.0), ("random", 2, 0.0), ("breadth", 12, 1.0), ("random", 12, 1.0))
    ]


def answered(cli: Cli, folder: Path, *options: str) -> dict[str, object]:
    given = ("--policy", "breadth", "--policy", "wider", "--budget", "2,12", "--answer", "--yes", "--json")
    return dict(json.loads(cli("replay", str(folder), *given, *options).ok().out))


def test_readers_are_paid_once_for_what_trees_show_and_nothing_for_what_a_live_run_asked(
    cli: Cli, data: str, tmp_path: Path, scripted: ScriptedServer
) -> None:
    folder = tmp_path / "recorded"
    record(cli, data, folder)
    live = ("--systems", "judge", "--judge", "generated", "--topk", "1", "--max-depth", "1", "--width", "1")
    cli("eval", "run", "--dataset", data, *live, "--out", str(tmp_path / "run")).ok()
    paid = scripted.requests.total()
    told = cli("replay", str(folder), "--policy", "breadth", "--budget", "12", "--answer", "--yes").ok()
    assert "1 tree shows 2 contexts: at most 2 calls" in told.err.replace("\n", " ")
    assert scripted.requests.total() == paid, "the run's readers were shown the same"

    document = answered(cli, folder)
    # Of the four trees two show the root's chunk alone: that is new; the others show what the run's readers saw.
    assert scripted.requests.total() == paid + 1
    assert [(row["budget"], row["em"], row["answered"]) for row in document["summary"]] == [
        *((2, 0.0, 1), (2, 0.0, 1), (12, 1.0, 1), (12, 1.0, 1))
    ]
    assert (document["reading"]["calls"], document["reading"]["cached_calls"]) == (1, 2)
    cli("replay", str(folder), "--answer").refused("--yes")


def test_a_limit_leaves_questions_and_the_next_call_pays_for_the_rest(
    cli: Cli, data: str, tmp_path: Path, scripted: ScriptedServer
) -> None:
    folder = tmp_path / "recorded"
    record(cli, data, folder)
    paid = scripted.requests.total()
    stopped = answered(cli, folder, "--max-calls", "1")
    assert (stopped["reading"]["unanswered"], stopped["reading"]["stopped_by"]) == (1, "max_calls=1")
    assert scripted.requests.total() == paid + 1
    assert "em" not in stopped["summary"][0]
    assert answered(cli, folder)["reading"]["unanswered"] == 0
    assert scripted.requests.total() == paid + 3


@pytest.mark.slow
def test_a_killed_recording_goes_on_and_pays_for_nothing_twice(
    cli: Cli, data: str, tmp_path: Path, scripted: ScriptedServer
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    options = ("--dataset", data, "--judge", "generated", "--topk", "2", "--depth", "1")
    scripted.responses = dam = Dam(lambda _: len(dam.let_through) >= 3)
    killed("eval", "record", str(parts), *options, at=dam)
    scripted.responses = None
    cli("replay", str(parts)).refused("None of the 1 questions of", "is recorded to its end")
    told = json.loads(cli("eval", "record", str(parts), *options, "--json").ok().out)
    before = scripted.requests.total()
    assert json.loads(cli("eval", "record", str(parts), *options, "--json").ok().out) == {**told, "calls": 0}
    assert scripted.requests.total() == before
    cli("eval", "record", str(whole), *options).ok()
    replayed = [cli("replay", str(folder), "--budget", "3,30", "--json").ok().out for folder in (whole, parts)]
    assert replayed[0].replace("whole", "parts") == replayed[1]


def test_a_noisy_recording_asks_no_judge_and_is_replayed_as_recorded(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: ScriptedServer
) -> None:
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    folder, mills = tmp_path / "recorded", write_mills(tmp_path / "mills.json")
    options = ("--limit", "3", "--judge", "noisy:auc=.9", "--topk", "2", "--depth", "1", "--tries", "2")
    told = json.loads(cli("eval", "record", str(folder), "--dataset", mills, *options, "--json").ok().out)
    assert (told["questions"], told["calls"], scripted.requests.total()) == (3, 0, 0)
    played = [
        json.loads(cli("replay", str(folder), "--budget", "8", *judge, "--json").ok().out)["summary"]
        for judge in ((), ("--judge", "noisy:auc=.9"))
    ]
    assert played[0] == played[1]


def test_the_noisy_judge_knows_the_gold_files_of_a_folder(
    cli: Cli, data: str, tmp_path: Path, scripted: ScriptedServer
) -> None:
    folder = tmp_path / "recorded"
    options = ("--dataset", data, "--judge", "noisy:auc=1", "--topk", "1", "--depth", "1", "--json")
    assert json.loads(cli("eval", "record", str(folder), *options).ok().out)["questions"] == 1
    told = json.loads(cli("replay", str(folder), "--policy", "breadth", "--budget", "2,8", "--json").ok().out)
    # The first of two files is held to be needed, and asks for the other.
    assert [(row["calls"], row["recall"]) for row in told["summary"]] == [(2, 0.5), (4, 0.5)]


def test_what_cannot_be_replayed_is_refused(cli: Cli, data: str, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    record(cli, data, folder)
    for options, advice in (
        (("--policy", "breadth", "--baseline", "wider"), "baseline='wider' is not played. Allowed: breadth."),
        (("--budget", "8,none"), "--budget '8,none' is not allowed"),
        (("--judge", "generated"), "noisy"),
        (("--html", str(tmp_path / "nowhere" / "page.html")), "nowhere"),
        (("--answer", "--yes", "--max-cost", "1"), "max_cost=1 cannot be enforced"),
    ):
        cli("replay", str(folder), *options).refused(advice)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (ChatReply(status=500, text="no way"), "Error code: 500"),
        (ChatReply(status=400, text="no way"), "Error code: 400"),
        (ChatReply(status=401, text="no way"), "HTTP 401"),
        (ChatReply(text=""), "empty"),
    ],
    ids=["failing", "refusing", "rejecting", "empty"],
)
def test_a_dead_endpoint_ends_a_recording_that_the_same_command_finishes(
    cli: Cli, data: str, tmp_path: Path, scripted: ScriptedServer, reply: ChatReply, problem: str
) -> None:
    folder = tmp_path / "recorded"
    given = ("eval", "record", str(folder), "--dataset", data, "--judge", "generated", "--topk", "1", "--depth", "1")
    scripted.responses = lambda request: reply
    cli(*given).refused("Stopped: 1 of 1 questions could not be recorded", problem, "run the same command")
    cli("replay", str(folder)).refused("None of the 1 questions of", "is recorded to its end")
    scripted.responses = None
    assert record(cli, data, folder)["unknown"] == 0
    with lock_folder(folder, remedy=""):
        cli(*given).refused(f"{folder} is being worked in by process", "give another folder")
        document = json.loads(cli("replay", str(folder), "--policy", "breadth", "--budget", "12", "--json").ok().out)
    assert [row["complete"] for row in document["summary"]] == [1.0]
    assert (document["unfinished"], document["unknown_verdicts"], document["unwritten"]) == (0, 0, 0)
