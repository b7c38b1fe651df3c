"""The proxies of the environment, at every door that opens HTTP."""

from __future__ import annotations

import ast
import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest

from judgetree.modules.background_loop import background_loop
from judgetree.modules.errors import ModelCallError, ProxyFault, UserError
from judgetree.modules.index.connection import client_arguments
from judgetree.modules.network.proxies import named_proxies, proxy_for
from judgetree.modules.network.sessions import RoutedSession
from judgetree.modules.retriever.rerank import DashScopeReranker
from tests.attacks.doors import DOORS
from tests.attacks.tls import FAULTS, faulty_tls
from tests.proxy_server import SmallProxy, refusal, small_proxy

ROOT = Path(__file__).parents[3]
FAR = "far.example"
NAMES = [each for name in ("http", "https", "all", "no", "grpc") for each in (f"{name}_proxy", f"{name}_PROXY".upper())]


# Python 3.11's http.client leaves the reply of a refused CONNECT open.
pytestmark = pytest.mark.filterwarnings(r"ignore:unclosed <socket\.socket \[closed\]:ResourceWarning")


@pytest.fixture(autouse=True, scope="module")
def collected() -> Iterator[None]:
    """What the tests leave is collected while its warnings are ignored."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*NAMES, "no_grpc_proxy", "REQUEST_METHOD"]:
        monkeypatch.delenv(name, raising=False)


# --- which proxy ---


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "https://a.b/", ""),
        ({"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://s:2"}, "https://a.b/", "http://s:2"),
        ({"HTTP_PROXY": "http://p:1"}, "https://a.b/", ""),
        ({"ALL_PROXY": "p:1", "HTTP_PROXY": "q:2"}, "https://a.b/", "http://p:1"),
        ({"ALL_PROXY": "socks5://p:1", "HTTP_PROXY": "q:2"}, "http://a.b/", "http://q:2"),
        ({"https_proxy": "http://small:1", "HTTPS_PROXY": "http://large:2"}, "https://a.b/", "http://small:1"),
        ({"https_proxy": "", "HTTPS_PROXY": "http://large:2"}, "https://a.b/", ""),
        ({"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, "http://a.b/", ""),  # a header of a CGI's client
        ({"ALL_PROXY": "http://ada:lovelace@p:1"}, "https://a.b/", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "sqlite:///a.db", ""),
    ],
)
def test_the_proxy_of_an_address(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxy: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = proxy_for(url)
    assert (str(found.address) if found else "") == proxy
    assert "lovelace" not in f"{found} {named_proxies()}"


HERE = [
    *("localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.8.9.1", "127.1", "[::1]", "[::ffff:127.0.0.1]"),
    *("0.0.0.0", "[::]", "169.254.169.254", "[fe80::1]"),
]


@pytest.mark.parametrize("host", HERE)
def test_this_machine_is_asked_directly_unless_the_setting_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://p:1")
    assert proxy_for(f"http://{host}:8000/v1") is None
    monkeypatch.setenv("JUDGETREE_PROXY_LOOPBACK", "on")
    assert proxy_for(f"http://{host}:8000/v1") is not None
    monkeypatch.setenv("NO_PROXY", "*")
    assert proxy_for(f"http://{host}:8000/v1") is None


@pytest.mark.parametrize(
    ("entries", "direct", "proxied"),
    [
        ("*", ["a.b", "10.0.0.1"], []),
        ("example.org", ["example.org", "a.example.org", "EXAMPLE.ORG."], ["wexample.org", "example.org.b"]),
        (".example.org", ["example.org", "a.example.org"], ["wexample.org"]),
        ("*.example.org", ["a.example.org"], ["wexample.org"]),
        ("example.org:8000", ["example.org:8000", "a.example.org:8000"], ["example.org", "example.org:8001"]),
        ("10.0.0.0/8", ["10.9.8.7", "10.0.0.1:8000"], ["11.0.0.1", "10.example.org"]),
        ("10.0.0.1:8000", ["10.0.0.1:8000"], ["10.0.0.1", "10.0.0.2:8000"]),
        ("fd00::/8", ["[fd12::1]:80"], ["[fe00::1]"]),
        ("[fd00::1]:80,::2", ["[fd00::1]", "[::2]:99"], ["[fd00::1]:81"]),
        (" a.b ,, c.d e.f", ["a.b", "c.d", "e.f"], ["x.y"]),
        ("http://a.b", ["a.b"], ["x.y"]),
        ("10.0.0.0/99,::/x,:,[,a:b:c", [], ["10.0.0.1", "a.b"]),
    ],
)
def test_no_proxy_in_each_of_its_forms(
    monkeypatch: pytest.MonkeyPatch, entries: str, direct: list[str], proxied: list[str]
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://p:1")
    monkeypatch.setenv("NO_PROXY", entries)
    assert [host for host in direct if proxy_for(f"http://{host}/v1") is not None] == []
    assert [host for host in proxied if proxy_for(f"http://{host}/v1") is None] == []


@pytest.mark.parametrize(
    "value",
    ["socks5h://ada:lovelace@h:1", "socks://h", "ftp://h:2", "http://", "http://h:99999", "http://[::1", "a b", "://x"],
)
def test_a_proxy_that_cannot_be_used_is_named_with_what_is_allowed(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", value)
    with pytest.raises(ProxyFault, match=r"HTTPS_PROXY=.*http://") as caught:
        proxy_for("https://a.b/")
    assert "lovelace" not in str(caught.value)
    assert proxy_for("http://a.b/") is None, "the others are asked as ever"


# --- at each door ---


async def _dashscope(base_url: str, folder: Path, timeout_s: float) -> object:
    reranker = DashScopeReranker("m", api_key="sk-0123456789abcdef", base_url=base_url, timeout_s=timeout_s)
    return await asyncio.to_thread(reranker.rerank, "?", ["a", "b"], 2)


async def _session(base_url: str, folder: Path, timeout_s: float) -> object:
    """As traces are sent."""
    return await asyncio.to_thread(RoutedSession().post, base_url, timeout=timeout_s)


PROXIED: Mapping[str, Callable[[str, Path, float], Awaitable[object]]] = {
    **DOORS,
    "dashscope-rerank": _dashscope,
    "session": _session,
}
ENCRYPTED_ONLY = {"download"}


def failure_at(door: str, scheme: str, folder: Path) -> str:
    """What a door says of a server that is far away."""

    async def call() -> str:
        with pytest.raises((ModelCallError, UserError)) as caught:
            await PROXIED[door](f"{scheme}://{FAR}/v1", folder, 10.0)
        return str(caught.value)

    return background_loop().run(call())


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _through(monkeypatch: pytest.MonkeyPatch, proxy: SmallProxy | str) -> str:
    url = proxy if isinstance(proxy, str) else proxy.url
    monkeypatch.setenv("ALL_PROXY", url.replace("http://", "http://ada:lovelace@"))
    return url


@pytest.mark.parametrize("door", PROXIED)
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("407 Proxy Authentication Required", "demands a user and a password"),
        ("503 Service Unavailable", "503"),
        ("403 Forbidden", "403"),
    ],
)
def test_a_proxy_that_refuses_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, door: str, scheme: str, answer: str, said: str
) -> None:
    if scheme == "http" and (door in ENCRYPTED_ONLY or (door == "session" and not answer.startswith("407"))):
        pytest.skip("it takes https alone, or hands the reply on")
    with small_proxy(refusal(answer)) as proxy:
        url = _through(monkeypatch, proxy)
        message = failure_at(door, scheme, tmp_path)
    assert proxy.asked[0].split()[1].startswith(f"{FAR}:443" if scheme == "https" else f"http://{FAR}/")
    assert "proxy-authorization: basic" in proxy.heads[0].lower()
    assert said in message
    assert f"{url} (ALL_PROXY)" in message
    assert "lovelace" not in message


@pytest.mark.parametrize("door", PROXIED)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_dead_proxy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, door: str, scheme: str) -> None:
    if scheme == "http" and door in ENCRYPTED_ONLY:
        pytest.skip("it takes https alone")
    url = _through(monkeypatch, f"http://127.0.0.1:{_free_port()}")
    message = failure_at(door, scheme, tmp_path)
    assert f"{url} (ALL_PROXY) cannot be reached" in message
    assert f"add {FAR} to NO_PROXY" in message
    assert "lovelace" not in message


@pytest.mark.parametrize("door", PROXIED)
def test_a_proxy_that_puts_its_own_certificate_in_place_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, door: str
) -> None:
    with faulty_tls(FAULTS["self-signed"], tmp_path) as place, small_proxy(tunnel_to=int(place.split(":")[1])) as proxy:
        url = _through(monkeypatch, proxy)
        message = failure_at(door, "https", tmp_path)
    assert f"{url} (ALL_PROXY)" in message
    assert "SSL_CERT_FILE" in message


@pytest.mark.parametrize("door", PROXIED)
def test_a_scheme_that_is_not_spoken_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, door: str) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://ada:lovelace@127.0.0.1:1080")
    message = failure_at(door, "https", tmp_path)
    assert "ALL_PROXY=socks5h://127.0.0.1:1080 has the scheme 'socks5h'" in message


@pytest.mark.parametrize("uri", ["http://127.0.0.1:19530", "http://localhost:1", "http://10.0.0.7:19530"])
def test_milvus_is_asked_directly_where_other_servers_are(monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    monkeypatch.setenv("http_proxy", "http://p:1")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    assert client_arguments(uri, "")["grpc_options"]["grpc.enable_http_proxy"] == 0
    assert "grpc_options" not in client_arguments("http://far.example:19530", "")


# --- that no door is left out ---

OPENERS = {
    *("Client", "AsyncClient", "HTTPTransport", "AsyncHTTPTransport", "Session", "ClientSession", "urlopen"),
    *("DefaultAioHttpClient", "DefaultAsyncHttpxClient", "DefaultHttpxClient", "AsyncOpenAI", "OpenAI", "PoolManager"),
    *("MilvusClient", "AsyncMilvusClient", "OTLPSpanExporter", "insecure_channel", "HTTPConnection", "HTTPSConnection"),
    *("create_connection", "open_connection", "build_opener", "ProxyManager"),
}
"""Names of classes and functions that open a connection."""
ROUTED = {
    "modules/network/clients.py": "the clients of web search, rerank endpoints, downloads and readiness",
    "modules/network/sessions.py": "the session of DashScope's SDK and of OpenTelemetry's exporter",
    "modules/retriever/rerank_replies.py": "a RoutedSession",
    "modules/llm/openai_client.py": "the client of chats and embeddings; the unused one reads no environment",
    "modules/embedding/hosted.py": "has the client of chats",
    "modules/index/connection.py": "client_arguments: this machine and NO_PROXY directly, else gRPC's own rules",
    "graphs/rag/telemetry.py": "has a RoutedSession",
}
"""Files that open connections, and how proxies are chosen there."""
LOCAL = {
    "modules/index/lite_folder.py": "the gRPC server of a Lite folder, on this machine",
    "modules/cluster.py": "whether a port of the cluster answers; Ray has no proxies",
}
"""Files that open connections which have no proxies."""


def _opening(path: Path) -> set[str]:
    """The openers that a file calls, or makes a class of its own from."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        used: list[ast.expr] = []
        if isinstance(node, ast.Call):
            used = [node.func]
        elif isinstance(node, ast.ClassDef):
            used = list(node.bases)
        names = {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in used}
        found |= names & OPENERS
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func
            library = called.value.id if isinstance(called.value, ast.Name) else ""
            if library in ("httpx", "httpx2", "requests", "aiohttp") and called.attr in _VERBS:
                found.add(f"{library}.{called.attr}")
    return found


_VERBS = {"get", "post", "put", "head", "request", "stream", "patch", "delete"}


def test_every_file_that_opens_a_connection_is_routed() -> None:
    sources = [path for room in ("modules", "graphs", "eval", "app") for path in (ROOT / room).rglob("*.py")]
    opening = {str(path.relative_to(ROOT)): names for path in sources if (names := _opening(path))}
    unknown = {file: names for file, names in opening.items() if file not in {*ROUTED, *LOCAL}}
    assert not unknown, "take modules/network/clients.py or sessions.py there, or say how its proxies are chosen"


def test_the_registry_sees_a_door_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "door.py"
    file.write_text("import httpx, requests\nhttpx.AsyncClient()\nrequests.get('x')\n")
    assert _opening(file) == {"AsyncClient", "requests.get"}
