"""Every door by which a key's holder asks a model: its books are what the endpoint bills, and its limits hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.key import Budget
from judgetree.app.server.keys.spending import KeyLedger
from judgetree.app.server.keys.tables import KeyTables
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, Dam
from tests.app.server.safety.test_admission import ASK, MODEL, body, clients, key_for
from tests.app.server.safety.test_shutdown import served
from tests.app.talks import FIRST, THICKNESS
from tests.attacks.billing import FAILURES, Till
from tests.attacks.bills import FAILURES as BILLED_FAILURES
from tests.attacks.bills import Bill

Door = Callable[[httpx.Client, str, str], httpx.Response]

DOORS: dict[str, Door] = {
    "fast": lambda http, chat, question: http.post(ASK, json=body(question, model="fast")),
    "completions": lambda http, chat, question: http.post(ASK, json=body(question, chat_id=chat)),
    "completions-streamed": lambda http, chat, question: http.post(ASK, json=body(question, chat_id=chat, stream=True)),
    "conversations": lambda http, chat, question: http.post(
        f"/v1/conversations/{chat}/questions", json={"question": question, "model": MODEL}
    ),
    "knowledge": lambda http, chat, question: http.post(
        "/knowledge_chat_conversation", json={"question": question, "session_id": chat, "model_id": MODEL}
    ),
    "knowledge-filtered": lambda http, chat, question: http.post(
        "/knowledge_chat_conversation",
        json={"question": question, "session_id": chat, "model_id": MODEL, "use_insert_block": True},
    ),
}


@pytest.fixture(autouse=True)
def further_attempts(monkeypatch: pytest.MonkeyPatch, surroundings: dict[str, str]) -> None:
    """Calls have two attempts."""
    monkeypatch.setenv("JUDGETREE_RETRIES", "1")


@pytest.fixture(params=DOORS.values(), ids=DOORS)
def door(request: pytest.FixtureRequest) -> Door:
    return request.param  # type: ignore[no-any-return]


def charged(settings: Settings, name: str) -> int:
    """Tokens of a key's day, once no question of the key is open."""
    with closing(KeyTables(settings)) as tables:
        (key,) = [each for each in KeyBook(tables).entries() if each.name == name]
        for _ in range(600):
            if not tables.read(
                "SELECT 1 FROM key_use WHERE key_id = ? AND (turn_id = '' OR turn_id LIKE 'open:%')", key.id
            ):
                break
            time.sleep(0.05)
        return KeyLedger(tables).used(key.id).tokens


@pytest.mark.slow
def test_a_key_is_charged_what_the_endpoint_bills_whatever_it_replies(
    settings: Settings, scripted: ScriptedServer, door: Door
) -> None:
    keys = [key_for(settings, name, per_day=Budget(tokens=10_000_000)) for name in FAILURES]
    wrong = {}
    with clients(settings, *keys) as made:
        for name, http in zip(FAILURES, made, strict=True):
            till = scripted.responses = Till(scripted, name, fails=lambda number: number % 3 != 0)
            for _ in range(2):  # the second resumes what failed
                door(http, f"chat-{name}", CHAIN.question)
            if (paid := charged(settings, name)) != till.tokens:
                wrong[name] = (paid, till.tokens)
    assert wrong == {}


@pytest.mark.slow
def test_questions_at_once_exceed_a_day_by_no_more_than_what_was_in_flight(
    settings: Settings, scripted: ScriptedServer, door: Door
) -> None:
    """A question without a limit of its own could use any amount: 675,057 tokens on a day of 3,000."""
    day, at_once = 600, 4
    till = scripted.responses = Till(scripted)
    poor = key_for(settings, "poor", per_day=Budget(tokens=day))
    with clients(settings, poor) as (http,):
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda number: door(http, f"chat-{number}", CHAIN.question), range(3 * at_once)))
        late = (door(http, f"late-{number}", CHAIN.question) for number in range(60))
        refused = next(each for each in late if each.status_code == 429 or "data: ERROR: " in each.text)
        assert "The budget of this key for" in refused.text
        paid = charged(settings, "poor")
    assert paid == till.tokens
    assert paid <= day + at_once * till.largest


def test_a_long_prompt_of_fast_is_refused_before_it_is_paid_for(settings: Settings, scripted: ScriptedServer) -> None:
    till = scripted.responses = Till(scripted)
    keys = [
        key_for(settings, "day", per_day=Budget(tokens=3_000)),
        key_for(settings, "question", per_question=Budget(tokens=3_000)),
        key_for(settings, "both", per_day=Budget(tokens=6_000), per_question=Budget(tokens=3_000)),
    ]
    long = {"role": "system", "content": "long " * 20_000}
    asked = body(model="fast", messages=[long, {"role": "user", "content": FIRST}])
    with clients(settings, *keys) as made:
        for http in made:
            refused = http.post(ASK, json=asked)
            assert (refused.status_code, refused.json()["error"]["type"]) == (429, "insufficient_quota")
    assert till.requests == 0


def test_a_follow_up_keeps_to_the_limit_of_a_question(settings: Settings, scripted: ScriptedServer) -> None:
    """Its rewriting, filter and summary were outside: 26,030 tokens on 2,000."""
    limit = 2_000
    ada = key_for(settings, "ada", per_day=Budget(tokens=10_000_000), per_question=Budget(tokens=limit))
    with clients(settings, ada) as (http,):
        for question in (FIRST, "Norm A " * 2_000 + THICKNESS, THICKNESS, THICKNESS):
            till = scripted.responses = Till(scripted)
            answered = DOORS["knowledge-filtered"](http, "talk", question)
            assert answered.status_code == 200
            assert till.tokens <= limit, question[:40]


def test_a_call_of_fast_that_is_broken_off_is_charged(settings: Settings, scripted: ScriptedServer) -> None:
    dam = Dam(stops=lambda _: True)
    scripted.responses = dam
    ada = key_for(settings, "ada", per_day=Budget(tokens=1_000_000))
    with clients(settings, ada) as (http,):
        with pytest.raises(httpx.ReadTimeout):
            http.post(ASK, json=body(model="fast"), timeout=httpx.Timeout(30, read=1.0))
        assert dam.reached.wait(30)
        assert 0 < charged(settings, "ada") < 1_000  # by estimate, and no longer what was reserved
    dam.opened.set()


def test_a_key_is_charged_what_the_endpoint_bills_below_the_level_of_a_reply(
    settings: Settings, scripted: ScriptedServer, door: Door
) -> None:
    """Streams that break off, errors within replies, and refusals, met by questions at once and resumed."""
    ada = key_for(settings, "ada", per_day=Budget(tokens=1_000_000), per_question=Budget(tokens=3_000))
    bill = Bill(scripted, sorted(set(BILLED_FAILURES) - {"error-429"}), share=0.5)
    with clients(settings, ada) as (http,):
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda number: door(http, f"chat-{number % 3}", CHAIN.question), range(6)))
        assert charged(settings, "ada") == bill.tokens


@pytest.mark.slow
def test_what_a_killed_server_had_reserved_is_settled_when_the_day_is_full(
    settings: Settings, scripted: ScriptedServer
) -> None:
    """A kill locked a key out until midnight, from its own question too: it left what a whole question may use."""
    till = Till(scripted)
    scripted.responses = dam = Dam(stops=lambda request: request.prompt.kind == "read", answer=till)
    budgets = {"per_day": Budget(tokens=14_000), "per_question": Budget(tokens=10_000)}
    ada = {"Authorization": f"Bearer {key_for(settings, 'ada', **budgets)}"}
    with (
        served("--keys") as (process, http),
        http.stream("POST", ASK, json=body(chat_id="one", stream=True), headers=ada) as cut,
    ):
        assert cut.status_code == 200
        assert dam.reached.wait(60)
        dam.reached.clear()
        process.kill()
    with served("--keys") as (_, http):
        with http.stream("POST", ASK, json=body(chat_id="two", stream=True), headers=ada) as running:
            assert running.status_code == 200
            assert dam.reached.wait(60)
            refused = http.post(ASK, json=body(chat_id="three"), headers=ada)
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "budget_held")  # by one that runs
            dam.opened.set()
            assert "data: [DONE]" in running.read().decode()
        assert http.post(ASK, json=body(chat_id="one"), headers=ada).status_code == 200
    assert till.tokens <= charged(settings, "ada") < till.tokens + 500  # the call that was cut off, by estimate
