"""Replies that cannot be used, at the command line: they count against the limits of a question, resumed or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, COLLECTION, Cli, new_thread
from tests.attacks.billing import Till


@pytest.mark.parametrize("failure", ["empty", "refused-by-a-filter"])
def test_a_question_that_is_resumed_again_and_again_makes_no_more_calls_than_its_limit(
    cli: Cli, scripted: ScriptedServer, home: object, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """Each resume had the attempts of an answer anew."""
    monkeypatch.setenv("JUDGETREE_RETRIES", "1")
    till = scripted.responses = Till(scripted, failure)
    thread = new_thread()
    asked = ("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread, "--max-llm-calls", "4")
    outcomes = [cli(*asked) for _ in range(6)]
    assert all(each.status != 0 for each in outcomes)
    assert "The budget of 4 model calls for this question is spent" in outcomes[-1].err
    assert till.requests == 4


@pytest.mark.parametrize(
    ("limit", "failure"),
    [
        ("--max-tree-tokens", "empty"),
        ("--max-tree-tokens", "only-thinking"),
        ("--max-tree-cost-usd", "refused-by-a-filter"),
    ],
)
def test_a_question_that_is_resumed_again_and_again_keeps_to_its_limit_of_tokens_and_money(
    cli: Cli, scripted: ScriptedServer, home: Path, monkeypatch: pytest.MonkeyPatch, failure: str, limit: str
) -> None:
    """Each resume paid for one more answer beyond the limit, without end."""
    monkeypatch.setenv("JUDGETREE_RETRIES", "1")
    (home / "prices.toml").write_text('[chat."scripted"]\nprompt = 1000\ncompletion = 1000\n')
    till = scripted.responses = Till(scripted, failure)
    tokens = 1_500
    given = str(tokens) if limit == "--max-tree-tokens" else str(tokens / 1000)
    asked = ("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", new_thread(), limit, given)
    outcomes = [cli(*asked) for _ in range(8)]
    assert all(each.status != 0 for each in outcomes)
    assert "for this question is spent" in outcomes[-1].err
    assert till.tokens <= tokens + till.largest
