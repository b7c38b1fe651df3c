"""What ``judgetree eval run`` says of money: cost, limits, and the estimate of a dry run."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunStore
from judgetree.modules.calls.prices import dollars
from tests.app.conftest import Cli
from tests.eval.dataset_files import write_lines

QUESTIONS = 6


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Questions that are asked closed book, so that no index is made."""
    monkeypatch.setenv("JUDGETREE_HOME", str(tmp_path / "home"))
    rows = ({"id": f"q{n}", "question": f"What is {n}?", "golden_answers": [str(n)]} for n in range(QUESTIONS))
    return write_lines(tmp_path, *rows, name="qa.jsonl")


@pytest.fixture
def priced(data: Path, tmp_path: Path) -> Path:
    """The same, where the scripted model has a price: a dollar for a thousand tokens of any kind."""
    (tmp_path / "home").mkdir()
    table = "[chat.scripted]\nprompt = 1000\ncompletion = 1000\n"
    (tmp_path / "home" / "prices.toml").write_text(table, encoding="utf-8")
    return data


def options(data: Path, out: Path, *more: str) -> tuple[str, ...]:
    return ("eval", "run", "--dataset", f"flashrag:{data}", "--systems", "llm", "--out", str(out), *more)


def tokens(out: Path) -> int:
    trees = [row.tree for row in RunStore(out).read_attempts() if row.tree]
    return sum(tree.prompt_tokens + tree.completion_tokens for tree in trees)


def test_unknown_price_is_unknown_everywhere(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ran = cli(*options(data, out)).ok()
    assert "Cost of the run until now: unknown" in ran.out
    told = json.loads(cli(*options(data, out, "--json")).out)
    assert (told["cost_usd"], told["cost_known_usd"]) == (None, 0.0)
    report = cli("eval", "report", str(out))
    assert "| unknown |" in report.out
    assert "Paid in all: llm unknown;" in report.out
    assert pd.read_csv(out / "results.csv")["cost_usd"].isna().all()
    (record,) = [
        record
        for record in json.loads(cli("eval", "report", str(out), "--json").out)["systems"]
        if record["metric"] == "cost_usd"
    ]
    assert (record["mean"], record["n"]) == (None, QUESTIONS)


def test_known_price_is_applied_when_the_rows_are_looked_at(cli: Cli, priced: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    told = json.loads(cli(*options(priced, out, "--json")).out)
    assert told["cost_usd"] == pytest.approx(tokens(out) / 1000)
    assert cli("eval", "report", str(out)).status == 0
    assert pd.read_csv(out / "results.csv")["cost_usd"].sum() == pytest.approx(tokens(out) / 1000)
    (tmp_path / "home" / "prices.toml").write_text("[chat.scripted]\nprompt = 0\ncompletion = 0\n", encoding="utf-8")
    assert "Paid in all: llm $0.00;" in cli("eval", "report", str(out)).out


def test_cost_of_tokens_that_were_not_reported_is_told_as_an_estimate(
    cli: Cli, priced: Path, tmp_path: Path, scripted: ScriptedServer
) -> None:
    out = tmp_path / "run"
    scripted.responses = lambda _: ChatReply(text="Oslo", counts_tokens=False)
    told = json.loads(cli(*options(priced, out, "--json")).out)
    assert told["cost_is_estimated"]
    document = json.loads(cli("eval", "report", str(out), "--json").out)
    assert document["paid"]["llm"] == {name: told[name] for name in ("cost_usd", "cost_known_usd", "cost_is_estimated")}


def test_report_counts_what_answers_that_were_asked_again_had_cost(cli: Cli, priced: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    cli(*options(priced, out))
    once = f"Paid in all: llm {dollars(tokens(out) / 1000)};"
    assert once in cli("eval", "report", str(out)).out
    told = json.loads(cli(*options(priced, out, "--force", "--json")).out)
    replaced = f"{QUESTIONS} answers that a later attempt replaced included, which no column counts"
    both = f"Paid in all: llm {dollars(tokens(out) / 1000)} ({replaced});"
    assert both in cli("eval", "report", str(out)).out
    document = json.loads(cli("eval", "report", str(out), "--json").out)
    paid = {"cost_usd": told["cost_usd"], "cost_known_usd": told["cost_usd"], "cost_is_estimated": False}
    assert document["paid"] == {"llm": paid}


def test_limit_on_money_stops_cleanly_and_the_run_goes_on(cli: Cli, priced: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    stopped = json.loads(cli(*options(priced, out, "--max-cost", "0.4", "--json")).out)
    assert (stopped["asked"], stopped["stopped_by"]) == (1, "max_cost=0.4")
    assert 0 < stopped["cost_usd"] <= 0.4, "a second call might have cost more than what was left"
    told = cli("eval", "report", str(out)).out
    assert f"the run is not finished: {QUESTIONS - 1} of {QUESTIONS} answers are missing" in told
    again = cli(*options(priced, out, "--max-cost", "0.4"))
    assert "0 asked" in again.out
    assert "Stopped at max_cost=0.4; the same command with a higher limit continues." in again.out
    assert json.loads(cli(*options(priced, out, "--json")).out)["asked"] == QUESTIONS - 1


def test_limit_on_money_without_a_price_is_refused(
    cli: Cli, data: Path, tmp_path: Path, scripted: ScriptedServer
) -> None:
    ran = cli(*options(data, tmp_path / "run", "--max-cost", "5")).refused("scripted' is unknown")
    assert str(tmp_path / "home" / "prices.toml") in ran.err.replace("\n", "")
    assert sum(scripted.requests.values()) == 0


def test_dry_run_asks_a_pilot_that_is_kept(cli: Cli, priced: Path, tmp_path: Path, scripted: ScriptedServer) -> None:
    out = tmp_path / "run"
    estimate = json.loads(cli(*options(priced, out, "--dry-run", "--pilot", "2", "--json")).out)
    (llm,) = estimate["systems"]
    assert (llm["system"], llm["answered"], llm["left"]) == ("llm", 2, QUESTIONS - 2)
    assert estimate["pilot"]["asked"] == sum(scripted.requests.values()) == 2
    assert estimate["pilot"]["cost_usd"] == pytest.approx(tokens(out) / 1000)
    assert llm["calls"] == {"value": 4, "low": 4, "high": 4}
    assert llm["cost_usd"]["low"] <= llm["cost_usd"]["value"] <= llm["cost_usd"]["high"]
    again = json.loads(cli(*options(priced, out, "--dry-run", "--pilot", "2", "--json")).out)
    free = {"cost_usd": 0.0, "cost_known_usd": 0.0, "cost_is_estimated": False}
    assert again["pilot"] == {"asked": 0, **free}
    assert again["systems"] == estimate["systems"]
    ran = json.loads(cli(*options(priced, out, "--json")).out)
    assert (ran["asked"], ran["kept"]) == (QUESTIONS - 2, 2)
    assert ran["cost_usd"] - estimate["pilot"]["cost_usd"] == pytest.approx(llm["cost_usd"]["value"], rel=0.5)


def test_dry_run_without_a_pilot_uses_kept_rows(cli: Cli, data: Path, tmp_path: Path, scripted: ScriptedServer) -> None:
    out = tmp_path / "run"
    cli(*options(data, out, "--dry-run", "--pilot", "0")).refused("--pilot N")
    cli(*options(data, out, "--limit", "3"))
    asked = sum(scripted.requests.values())
    told = cli(*options(data, out, "--dry-run", "--pilot", "0")).ok()
    head, llm = (line.split() for line in told.out.splitlines())
    assert head == ["system", "answered", "left", "calls", "tokens", "cost", "time"]
    assert llm[:3] == ["llm", "3", "3"]
    assert "unknown" in llm
    assert "cost $0.00; its rows are in" in told.err.replace("\n", " ")
    assert sum(scripted.requests.values()) == asked == 3


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("--pilot", "3"), "--pilot belongs to --dry-run"),
        (("--dry-run", "--force"), "leave out --force"),
        (("--max-cost", "0"), "max_cost"),
        (("--dry-run", "--pilot", "-1"), "--pilot"),
    ],
)
def test_unfit_options_end_with_2(cli: Cli, data: Path, tmp_path: Path, given: tuple[str, ...], named: str) -> None:
    cli(*options(data, tmp_path / "run", *given)).refused(named)
