"""The collection of the conversations' memory is refused as one of documents at every door, before anything is done.

The doors are found: options of commands, routes, and parameters of what the package exports.
"""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

import judgetree
from judgetree import evaluation
from judgetree.app.server.application import ROUTERS, create_app
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.errors import CollectionError
from judgetree.modules.index.connection import connect
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import COLLECTION, Cli, every_command
from tests.app.server.serving import serving
from tests.modules.fake_embeddings import BagOfWordsEmbedder

REFUSED = "remembers conversations"
QUESTION = "Which vessel does Norm A name?"

COMMANDS = {
    "ask": (QUESTION, "-c"),
    "chat": ("-c",),
    "eval run": ("--out", "run", "--dataset", "standards-qa", "--corpus"),
    "eval record": ("recorded", "--dataset", "standards-qa", "--corpus"),
    "graph show": (QUESTION, "--graph", "links", "-c"),
    "index": ("docs", "-c"),
    "keys add": ("ada", "-c"),
    "serve": ("--port", "0", "-c"),
    "collections": ("--rename", COLLECTION),
}
"""Words of a command to its arguments, of which the name of a collection is the last."""

ROUTES: dict[str, Callable[[httpx.Client, str], httpx.Response]] = {
    "GET /v1/collections/{name}": lambda http, name: http.get(f"/v1/collections/{name}"),
    "GET /v1/collections/{name}/search": lambda http, name: http.get(
        f"/v1/collections/{name}/search", params={"query": "wall"}
    ),
    "POST /v1/collections/{name}/documents": lambda http, name: http.post(
        f"/v1/collections/{name}/documents", files={"files": ("a.md", b"Norm B names the kettle.")}
    ),
    "GET /v1/models/{model_id:path}": lambda http, name: http.get(f"/v1/models/{name}/judge"),
    "POST /v1/chat/completions": lambda http, name: http.post(
        "/v1/chat/completions", json={"model": f"{name}/judge", "messages": [{"role": "user", "content": QUESTION}]}
    ),
    "POST /v1/conversations/{name}/questions": lambda http, name: http.post(
        "/v1/conversations/talk/questions", json={"question": QUESTION, "model": f"{name}/judge"}
    ),
    "POST /knowledge_chat_conversation": lambda http, name: http.post(
        "/knowledge_chat_conversation", json={"question": QUESTION, "model_id": f"{name}/judge"}
    ),
}

READING = ("GET /v1/collections/{name}", "GET /v1/collections/{name}/search")
"""Routes that know no collection but those of documents."""

EXPORTS: dict[str, Callable[[str, Path], object]] = {
    "judgetree.Conversations": lambda name, _: judgetree.Conversations(name),
    "judgetree.Index": lambda name, _: judgetree.Index(BagOfWordsEmbedder(), vector_store_name=name),
    "judgetree.RagSession": lambda name, _: judgetree.RagSession(name),
    "judgetree.ask": lambda name, _: judgetree.ask(QUESTION, collection=name),
    "judgetree.open_index": lambda name, _: judgetree.open_index(name, load_settings()),
    "judgetree.evaluation.Experiment": lambda name, out: evaluation.run(
        evaluation.Experiment(dataset="standards-qa", corpus=name), out=out
    ),
    "judgetree.evaluation.run": lambda name, out: evaluation.run(out=out, dataset="standards-qa", corpus=name),
}
NO_COLLECTION = ("judgetree.PrebuiltIndex", "judgetree.aask")
"""A file of passages has the name ``corpus`` there; a twin is its verb."""
PARAMETERS = {"collection", "collections", "corpus", "vector_store_name"}
MODELS = {"model", "model_id"}


def name_options() -> Iterator[tuple[str, str]]:
    """Commands with their options that take the name of a collection."""
    for words, command in every_command().items():
        for option in command.params:
            if {"--collection", "--corpus", "--rename"} & set(option.opts) or option.name == "collection":
                yield words, option.opts[0]


def routes_of(router: APIRouter) -> Iterator[tuple[str, APIRoute]]:
    for route in router.routes:
        if isinstance(route, APIRoute):
            for method in route.methods:
                yield f"{method} {route.path}", route


def takes_a_collection(name: str, route: APIRoute) -> bool:
    fields = getattr(getattr(route.body_field, "type_", None), "model_fields", {})
    annotated = getattr(route.body_field, "field_info", None)
    fields = fields or getattr(getattr(annotated, "annotation", None), "model_fields", {})
    return "/collections/{" in name or "{model_id" in name or not MODELS.isdisjoint(fields)


def exports_with_a_collection() -> Iterator[str]:
    for module in (judgetree, evaluation):
        for name in module.__all__:
            made = getattr(module, name)
            if callable(made) and not (inspect.isclass(made) and issubclass(made, BaseException)):
                try:
                    parameters = inspect.signature(made).parameters
                except (TypeError, ValueError):
                    continue
                if PARAMETERS & set(parameters):
                    yield f"{module.__name__}.{name}"


@pytest.fixture(params=["conversations", "memo"])
def taken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The memory's name by default, and by the setting."""
    if request.param == "memo":
        monkeypatch.setenv("JUDGETREE_CONVERSATION_COLLECTION", "memo")
    return str(request.param)


def test_every_door_is_known() -> None:
    assert {words for words, _ in name_options()} == set(COMMANDS)
    found = {name for router in ROUTERS for name, route in routes_of(router) if takes_a_collection(name, route)}
    assert found == set(ROUTES)
    assert set(exports_with_a_collection()) == {*EXPORTS, *NO_COLLECTION}


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_refuses_it(
    words: str, home: Path, cli: Cli, taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Norm B names the kettle.")
    shutil.copytree(Path(__file__).parents[2] / "data", tmp_path / "data")
    cli(*words.split(), *COMMANDS[words], taken).refused(REFUSED, f"judgetree collections --rename {taken} NEW")
    assert not (tmp_path / "run").exists()
    assert [each["name"] for each in _collections(cli)] == [COLLECTION]


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_refuses_it(route: str, home: Path, taken: str, shared_server: dict[str, httpx.Client]) -> None:
    answer = ROUTES[route](shared_server[taken], taken)
    if route in READING:
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "collection_not_found")
    else:
        assert answer.status_code == 400, answer.text
        assert REFUSED in answer.json()["error"]["message"]


@pytest.fixture(scope="module")
def shared_server(indexed_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, httpx.Client]]:
    """Clients of a server for each of the two names."""
    own = tmp_path_factory.mktemp("served") / "home"
    shutil.copytree(indexed_home, own)
    common = {"home": own, "embeddings": "local:use", "llm": "http://127.0.0.1:9/v1#none"}
    first, second = load_settings(**common), load_settings(**common, conversation_collection="memo")
    with (
        serving(first) as one,
        serving(second) as two,
        httpx.Client(base_url=one, timeout=60) as to_one,
        httpx.Client(base_url=two, timeout=60) as to_two,
    ):
        yield {"conversations": to_one, "memo": to_two}


def test_a_server_that_serves_it_is_not_made(home: Path, taken: str) -> None:
    with pytest.raises(CollectionError, match=REFUSED):
        create_app(load_settings(), ServerOptions(collections=(taken,)))


@pytest.mark.parametrize("name", EXPORTS)
def test_the_library_refuses_it(name: str, home: Path, taken: str, tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match=REFUSED):
        EXPORTS[name](taken, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_documents_that_have_the_name_from_before_are_kept_and_renamed(home: Path, cli: Cli) -> None:
    settings = load_settings()
    _give_name(settings, COLLECTION, "conversations")
    (listed,) = _collections(cli)
    assert listed["name"] == "conversations" and REFUSED in str(listed["problem"])
    cli("ask", QUESTION, "-c", "conversations").refused("judgetree collections --rename conversations NEW")
    with serving(settings) as address, httpx.Client(base_url=address, timeout=60) as http:
        (listed,) = http.get("/v1/collections").json()["data"]
        assert REFUSED in listed["problem"]
        assert "conversations/judge" not in http.get("/v1/models").text
        searched = http.get("/v1/collections/conversations/search", params={"query": "drum"})
        assert REFUSED in searched.json()["error"]["message"]
    cli("collections", "--rename", "conversations", "papers").ok()
    (listed,) = _collections(cli)
    assert (listed["name"], listed["files"], listed["problem"]) == ("papers", 4, "")
    asked = cli("ask", QUESTION, "-c", "papers").ok()
    assert "drum" in asked.out


def test_what_was_renamed_stays_when_another_collection_takes_its_name(home: Path, cli: Cli, tmp_path: Path) -> None:
    """A rewrite drops what interrupted ones left behind its name: not what has another name now."""
    cli("collections", "--rename", COLLECTION, "papers").ok()
    (tmp_path / "b.txt").write_text("Kettles are black.")
    cli("index", str(tmp_path / "b.txt"), "-c", COLLECTION).ok()
    cli("index", str(tmp_path / "b.txt"), "-c", COLLECTION, "--chunk-size", "100", "--chunk-overlap", "0").ok()
    assert {each["name"]: each["files"] for each in _collections(cli)} == {"papers": 4, COLLECTION: 1}
    cli("index", str(tmp_path / "b.txt"), "-c", "papers").ok()
    assert {each["name"]: each["files"] for each in _collections(cli)} == {"papers": 5, COLLECTION: 1}


def test_a_rename_takes_no_name_that_is_taken_missing_or_wrong(home: Path, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("Kettles are black.")
    cli("index", str(tmp_path / "b.txt"), "-c", "other").ok()
    for old, new, said in (
        (COLLECTION, "other", "There is a collection 'other' already"),
        ("gone", "papers", "There is no collection 'gone'"),
        (COLLECTION, "a b", "cannot be a collection's name"),
        (COLLECTION, COLLECTION, "already"),
    ):
        cli("collections", "--rename", old, new).refused(said)
    assert [each["name"] for each in _collections(cli)] == [COLLECTION, "other"]


def _collections(cli: Cli) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads(cli("collections", "--json").ok().out)
    return listed


def _give_name(settings: Settings, old: str, new: str) -> None:
    """Rename a collection to a name that is refused now, as an older judgetree could."""
    with closing(connect(settings.milvus_address)) as held:
        physical = held.client.describe_collection(old)["collection_name"]
        held.client.create_alias(physical, new)
        held.client.drop_alias(old)
