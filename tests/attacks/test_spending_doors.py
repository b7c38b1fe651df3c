"""The bill of a command that fails and is started again keeps to its limits, and is what the command says it paid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import (
    Cli,
    chat,
    cli,
    indexed_home,
    scripted,
    surroundings,
    talking_home,
)
from tests.test_limits import ROOT, asking_commands

from .bills import FAILURES, Bill
from .spending_doors import ELSEWHERE, PLAYS, Limit, Stage, document_of, priced_home

__all__ = ["chat", "cli", "indexed_home", "scripted", "surroundings", "talking_home"]

BILLED = tuple(name for name, failure in FAILURES.items() if failure.is_billed)
AT_ONCE = 3
SHARES = {"none-fails": 0.0, "some-fail": 0.4, "all-fail": 1.0}


def _cases() -> Iterator[ParameterSet]:
    """One case a command is quick, of its first limit."""
    for name, play in PLAYS.items():
        for limit in play.limits or (("", 0.0),):
            for share in play.shares:
                is_quick = limit in play.limits[:1] and share == play.quick
                marks = [] if is_quick else [pytest.mark.slow]
                if "workers" in name:
                    ignored = pytest.mark.filterwarnings("ignore::ResourceWarning")
                    marks += [pytest.mark.xdist_group("ray"), ignored]
                yield pytest.param(name, limit, share, id=f"{name}{limit[0]}, {share}", marks=marks)


@pytest.fixture
def stage(cli: Cli, chat: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("JUDGETREE_RETRIES", "1")
    monkeypatch.setenv("JUDGETREE_MAX_CONCURRENCY", str(AT_ONCE))
    priced_home()
    return Stage(cli=cli, chat=chat, folder=tmp_path)


def _exceeds(limit: Limit, requests: int, tokens: int, largest: int) -> bool:
    option, most = limit
    if "tokens" in option:
        return tokens > most + largest
    if "cost" in option:
        return tokens / 1000 > most + largest / 1000
    return bool(option) and requests > most


@pytest.mark.parametrize(("name", "limit", "share"), [*_cases()])
def test_a_bill_keeps_to_the_limit_and_to_the_books(
    stage: Stage, scripted: ScriptedServer, name: str, limit: Limit, share: str
) -> None:
    play, options = PLAYS[name], [part for part in (limit[0], f"{limit[1]:g}") if limit[0]]
    play.prepare(stage, options)
    bill = Bill(scripted, BILLED if share == "some-fail" else ("empty",), share=SHARES[share])
    before = 0
    for _ in range(play.starts):
        requests, tokens = (0, 0) if play.is_over_all_starts else (bill.requests, bill.tokens)
        before = before if play.counts_failed_starts else bill.requests
        outcome = play.start(stage, play.words(stage, options))
        assert not _exceeds(limit, bill.requests - requests, bill.tokens - tokens, bill.largest)
        document = document_of(outcome)
        if document is not None and (calls := play.calls(document)) is not None:
            assert calls == bill.requests - before
            before = bill.requests


def test_every_command_that_asks_a_model_is_played_against_a_bill() -> None:
    played = {name.partition(",")[0] for name in PLAYS}
    assert played.isdisjoint(ELSEWHERE)
    assert set(asking_commands()) == played | set(ELSEWHERE)
    assert [place for place in ELSEWHERE.values() if place.endswith(".py") and not (ROOT / place).is_file()] == []
