"""Questions of keys: within their budgets, beside each other, and apart from each other's conversations."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.key import Budget
from judgetree.app.server.keys.spending import KeyLedger
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.addresses import Address
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION, Dam
from tests.app.server.serving import serving
from tests.app.talks import FIRST, THICKNESS

MODEL = f"{COLLECTION}/judge"
ASK = "/v1/chat/completions"


def key_for(settings: Settings, name: str, **grants: object) -> str:
    with closing(KeyTables(settings)) as tables:
        return KeyBook(tables).add(name, **({"collections": None} | grants))[1]  # type: ignore[arg-type]


def body(question: str = FIRST, **more: object) -> dict[str, object]:
    return {"model": MODEL, "messages": [{"role": "user", "content": question}]} | more


@contextmanager
def clients(settings: Settings, *keys: str, **options: object) -> Iterator[list[httpx.Client]]:
    chosen = ServerOptions(needs_keys=True, **options)  # type: ignore[arg-type]
    with serving(settings, chosen) as url:
        made = [httpx.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {key}"}) for key in keys]
        try:
            yield made
        finally:
            for client in made:
                client.close()


def test_a_spent_budget_is_said_as_openai_does_with_when_it_renews(settings: Settings) -> None:
    poor = key_for(settings, "poor", per_day=Budget(tokens=50))
    with clients(settings, poor) as (http,):
        assert http.post(ASK, json=body(chat_id="one")).status_code == 200
        for again in (body(chat_id="two"), body(stream=True), body(model="fast")):
            refused = http.post(ASK, json=again)
            error = refused.json()["error"]
            assert (refused.status_code, error["type"], error["code"]) == (
                429,
                "insufficient_quota",
                "insufficient_quota",
            )
            assert "It renews at" in error["message"]
            assert int(refused.headers["retry-after"]) > 0


def test_calls_in_flight_are_charged_to_a_client_that_leaves_and_once_if_it_comes_back(
    settings: Settings, scripted: ScriptedServer
) -> None:
    dam = Dam(stops=lambda _: True)
    scripted.responses = dam
    ada = key_for(settings, "ada", per_day=Budget(tokens=1_000_000))
    with clients(settings, ada) as (http,):
        with http.stream("POST", ASK, json=body(chat_id="one", stream=True)) as running:
            assert running.status_code == 200
            assert dam.reached.wait(30)
        charged = charged_tokens(settings, "ada")
        assert 0 < charged < 10_000  # the judges' prompts, by estimate, and no longer what was reserved
        dam.opened.set()
        usage = http.post(ASK, json=body(chat_id="one")).json()["usage"]
        assert charged_tokens(settings, "ada") == usage["total_tokens"] > charged


def charged_tokens(settings: Settings, name: str) -> int:
    """Tokens of a key's day, once none are only reserved."""
    with closing(KeyTables(settings)) as tables:
        (key,) = [each for each in KeyBook(tables).entries() if each.name == name]
        for _ in range(600):
            used = KeyLedger(tables).used(key.id).tokens
            if used < 100_000:
                break
            time.sleep(0.05)
        return used


def test_a_key_s_limit_of_a_question_bounds_its_tree(settings: Settings, scripted: ScriptedServer) -> None:
    poor = key_for(settings, "poor", per_question=Budget(tokens=1000))
    rich = key_for(settings, "rich")
    with clients(settings, poor, rich) as (few, many):
        answers = [http.post(ASK, json=body(CHAIN.question)).json()["judgetree"] for http in (few, many)]
    assert answers[0]["usage"]["llm_calls"] < answers[1]["usage"]["llm_calls"]


def test_one_key_sees_nothing_of_another_s(settings: Settings) -> None:
    ada, eve = key_for(settings, "ada"), key_for(settings, "eve")
    none = key_for(settings, "none", collections=frozenset())
    with clients(settings, ada, eve, none) as (mine, hers, outside):
        asked = mine.post(ASK, json=body(chat_id="monday")).json()["judgetree"]
        for name in ("monday", asked["conversation"], asked["conversation"].replace("/", "%2F")):
            for method, path in (("GET", ""), ("GET", "/history"), ("DELETE", ""), ("POST", "/undo")):
                assert hers.request(method, f"/v1/conversations/{name}{path}").status_code in (404, 405), (name, path)
        assert hers.get(f"/v1/trees/{asked['thread_id']}").status_code == 404
        follow = hers.post(ASK, json=body(THICKNESS, thread_id="monday")).json()["judgetree"]
        assert follow["parent_turn_id"] == ""  # a conversation of her own
        assert len(mine.get("/v1/conversations/monday").json()["turns"]) == 1
        assert [model["id"] for model in outside.get("/v1/models").json()["data"]] == ["fast"]
        assert outside.post(ASK, json=body()).status_code == 404


def test_a_key_leaves_places_to_others(settings: Settings, scripted: ScriptedServer) -> None:
    dam = Dam(stops=lambda _: True)
    scripted.responses = dam
    ada, eve = key_for(settings, "ada"), key_for(settings, "eve")
    with clients(settings, ada, eve, max_runs=2) as (mine, hers):
        with mine.stream("POST", ASK, json=body(stream=True)) as running:
            assert running.status_code == 200
            assert dam.reached.wait(30)
            refused = mine.post(ASK, json=body(chat_id="two"))
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_runs")
            with hers.stream("POST", ASK, json=body(stream=True)) as other:
                assert other.status_code == 200
                assert hers.post(ASK, json=body(model="fast")).status_code == 429
            dam.opened.set()
            assert "data: [DONE]" in running.read().decode()
        assert mine.post(ASK, json=body(chat_id="three")).status_code == 200


def test_no_log_has_keys_questions_or_documents(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ada = key_for(settings, "ada")
    with clients(settings, ada) as (http,):
        assert http.post(ASK, json=body()).status_code == 200
        assert "[DONE]" in http.post(ASK, json=body(stream=True, chat_id="two")).text
        http.post(ASK, json=body("x" * 30_000))
        http.post(ASK, json={"messages": "Norm A names the drum."})
        http.get("/v1/models", headers={"Authorization": f"Bearer {ada[:-1]}!"})
        http.get(f"/v1/models?key={ada}")
    own = "\n".join(record.getMessage() for record in caplog.records if not record.name.startswith("httpx"))
    for secret in (ada, ada[-43:], FIRST, "Norm A names the drum", "the drum"):
        assert secret not in own


@pytest.mark.parametrize("name", ["a\r\nSet-Cookie: x=1", "a\nb", "a\x00b", "\ud800", "../../etc", "x" * 5000])
def test_names_reach_no_header(settings: Settings, name: str) -> None:
    with clients(settings, key_for(settings, "ada")) as (http,):
        answer = http.post(ASK, content=json.dumps(body(chat_id=name)), headers={"Content-Type": "application/json"})
        assert answer.status_code in (200, 400, 422)
        assert "set-cookie" not in answer.headers


def test_the_models_of_a_server_share_its_cap_on_model_calls(settings: Settings, scripted: ScriptedServer) -> None:
    def slowly(_: ReceivedRequest) -> None:
        time.sleep(0.02)  # a call is long enough to meet another

    scripted.responses = slowly
    capped = settings.model_copy(update={"max_concurrency": 1})
    with serving(capped) as url, httpx.Client(base_url=url, timeout=60) as http, ThreadPoolExecutor() as threads:
        models = [f"{COLLECTION}/judge", f"{COLLECTION}/naive", "fast"]
        for answer in threads.map(lambda model: http.post(ASK, json=body() | {"model": model}), models):
            assert answer.status_code == 200
    assert scripted.peak_active == 1


def test_a_store_that_fails_is_the_server_s_fault(settings: Settings, tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_text("no database " * 100)
    with serving(settings.model_copy(update={"checkpoints": Address(f"sqlite:///{broken}")})) as url:
        answer = httpx.post(f"{url}{ASK}", json=body(), timeout=60)
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "api_error")
    assert "cannot be used" in answer.json()["error"]["message"]
