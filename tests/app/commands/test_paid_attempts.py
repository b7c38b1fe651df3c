"""Replies that cannot be used, at the command line: they count against the limits of a question, resumed or not."""

from __future__ import annotations

import pytest

from judgetree.app.scripted.server import ScriptedServer
from tests.app.conftest import CHAIN, COLLECTION, Cli, new_thread
from tests.attacks.billing import Till


@pytest.mark.parametrize("failure", ["empty", "only-thinking", "refused-by-a-filter"])
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
