"""A question whose limit was spent by replies that could not be used: asked again, it begins anew."""

from __future__ import annotations

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.keys.key import Budget
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN
from tests.app.server.safety.test_admission import clients, key_for
from tests.app.server.safety.test_budgets import DOORS, charged, further_attempts
from tests.attacks.billing import Till

__all__ = ["further_attempts"]


@pytest.mark.slow
@pytest.mark.parametrize("door", sorted(set(DOORS) - {"fast"}))
def test_a_question_that_is_spent_is_asked_anew_within_the_day_of_its_key(
    settings: Settings, scripted: ScriptedServer, door: str
) -> None:
    """It was answered from too little evidence, or each further try was paid for beyond the limit."""
    limit = 1_500
    ada = key_for(settings, "ada", per_day=Budget(tokens=1_000_000), per_question=Budget(tokens=limit))
    with clients(settings, ada) as (http,):
        bills: list[int] = []
        while sum(bills) <= 2 * limit:
            till = scripted.responses = Till(scripted, "only-thinking")
            DOORS[door](http, "talk", CHAIN.question)
            assert 0 < till.tokens <= limit + till.largest
            bills.append(till.tokens)
        assert charged(settings, "ada") == sum(bills)
        scripted.responses = None
        answers = [DOORS[door](http, "talk", CHAIN.question).text for _ in range(2)]
        assert any("40 mm" in text for text in answers), "the first may have been left too little evidence"
