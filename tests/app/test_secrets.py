"""Secrets: planted in every setting, sent where they belong, and found in no file and on no stream of any command."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
import yaml

from judgetree.app.cli import main
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.settings import load_settings
from tests.app.commands.test_eval_calibrate import write_mills
from tests.app.conftest import CHAIN, CHINESE, COLLECTION, every_command, write_corpus
from tests.eval.dataset_files import write_lines
from tests.loopback import QuietHandler, serving
from tests.modules.conftest import LiteServer
from tests.modules.rerank_server import serve_rerank
from tests.modules.searxng_server import serve_searxng

PLACES = (
    "llm",
    "llm-query",
    "judge-llm",
    "embeddings",
    "milvus",
    "searxng",
    "searxng-query",
    "rerank",
    "ragas",
    "yaml",
    "base-url",
    "named",
    "calibrate",
)
KEYS = ("JUDGETREE_LLM_API_KEY", "JUDGETREE_RERANK_API_KEY", "OPENAI_API_KEY", "DASHSCOPE_API_KEY")
PASSWORDS = {place: f"pw-{place}/{number}7q+z" for number, place in enumerate(PLACES)}
ASKING = ("run", "ragas", "calibrate")
SHORT = "q7Z"
"""A key of three characters, which an endpoint may ask for all the same."""


def with_secrets(url: str, place: str, *, query: str = "") -> str:
    scheme, _, rest = url.partition("://")
    rest, mark, model = rest.partition("#")
    asked = f"?api_key={quote(PASSWORDS[query], safe='')}" if query else ""
    return f"{scheme}://ada:{quote(PASSWORDS[place], safe='')}@{rest}{asked}{mark}{model}"


@dataclass(kw_only=True)
class EchoServer:
    """Answers every request with an error that repeats all it was sent, keys decoded too."""

    url: str = ""
    status: int = 401
    sent: list[str] = field(default_factory=list)


@contextmanager
def serve_echoes() -> Iterator[EchoServer]:
    state = EchoServer()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            key = self.headers.get("Authorization", "").partition(" ")[2]
            forms = [
                self.path,
                key,
                base64.b64encode(f"Bearer {key}".encode()).decode(),
                repr(key),
                quote(key, safe=""),
            ]
            try:
                forms.append(base64.b64decode(key, validate=True).decode())
            except ValueError:
                """It was no Basic authorization."""
            state.sent += forms
            said = json.dumps({"error": {"message": "refused: " + " | ".join(forms), "code": "no"}, "forms": forms})
            with suppress(ConnectionError):  # the client may have had enough
                self.answer(said.encode(), status=state.status, headers={"Content-Type": "application/json"})

        def do_POST(self) -> None:
            self.do_GET()

    with serving(Handler) as state.url:
        yield state


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Every secret by its place; the keys stand in the environment."""
    keys = {name: f"key-{name[-18:].lower()}-{number}x9" for number, name in enumerate(KEYS)}
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    token = "tok-milvus-55"
    monkeypatch.setenv("JUDGETREE_MILVUS_TOKEN", f"root:{token}")
    return {**PASSWORDS, **keys, "milvus-token": token}


def forms_of(secret: str) -> set[bytes]:
    as_bytes = secret.encode()
    pairs = [as_bytes, b"ada:" + as_bytes, b"root:" + as_bytes, b"Bearer " + as_bytes]
    return {as_bytes, quote(secret, safe="").encode(), *(base64.b64encode(pair).rstrip(b"=") for pair in pairs)}


def leaks(secrets: Mapping[str, str], texts: Mapping[str, bytes]) -> list[str]:
    return [
        f"{place} in {name}: …{text[max(0, at - 60) : at + 40]!r}"
        for name, text in texts.items()
        for place, secret in secrets.items()
        for form in forms_of(secret)
        if (at := text.find(form)) >= 0
    ]


def files_below(*folders: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, surroundings: dict[str, str]
) -> tuple[Callable[..., int], dict[str, bytes]]:
    """Runs a command and keeps what it writes on both streams."""
    streams: dict[str, bytes] = {}

    def run(*arguments: str, typed: str = "") -> int:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        status = main(list(arguments))
        captured = capsys.readouterr()
        streams[f"{len(streams)}: {' '.join(arguments)}"] = (captured.out + captured.err).encode()
        return status

    return run, streams


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The corpus and a data set of two questions, apart from what is searched for secrets."""
    folder = tmp_path / "given"
    write_corpus(folder / "standards")
    write_lines(folder, asdict(CHAIN), asdict(CHINESE), name="qa.jsonl")
    return folder


def plant(monkeypatch: pytest.MonkeyPatch, model_url: str, searxng_url: str, milvus_uri: str) -> None:
    chosen = {
        "LLM": with_secrets(f"{model_url}#scripted", "llm", query="llm-query"),
        "JUDGE_LLM": with_secrets(f"{model_url}#other", "judge-llm"),
        "EMBEDDINGS": with_secrets(f"{model_url}#vectors", "embeddings"),
        "MILVUS_URI": with_secrets(milvus_uri, "milvus"),
        "SEARXNG_URL": with_secrets(searxng_url, "searxng", query="searxng-query"),
        "LLM_BASE_URL": with_secrets(model_url, "base-url"),
        "ENDPOINT_NAMES": json.dumps({with_secrets(model_url, "named"): "lab"}),
        "TIMEOUT_S": "20",
    }
    for name, value in chosen.items():
        monkeypatch.setenv(f"JUDGETREE_{name}", value)


def write_experiment(file: Path, model_url: str, rerank_url: str) -> str:
    ranker = {"model": with_secrets(f"{rerank_url}#reranker", "rerank")}
    llm = with_secrets(f"{model_url}#scripted", "yaml")
    content = {"llm": llm, "ranker_type": "model", "ranker_params": ranker, "search_type": "dense", "max_rec_depth": 1}
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(file)


def commands_of(data: Path, out: Path, config: str, model_url: str, *, thread: str = "t") -> list[tuple[str, ...]]:
    """All commands, with the options that write files."""
    spec = with_secrets(f"{model_url}#scripted", "ragas")
    run, files = str(out / "run"), {kind: str(out / f"{thread}.{kind}") for kind in ("svg", "html", "json", "dot")}
    graphml = str(out / f"{thread}.graphml")
    embed = with_secrets(f"{model_url}#vectors", "embeddings")
    mills = write_mills(data / "hotpot_train.json")
    cloned = data / "cloned"
    cloned.mkdir(exist_ok=True)
    (cloned / ".env").write_text(f"JUDGETREE_LLM={spec}\nJUDGETREE_EMBEDDINGS={embed}\n")
    drawn = ("--svg", files["svg"], "--html", files["html"], "--json", files["json"], "--dot", files["dot"])
    return [
        ("index", str(data / "standards"), "-c", COLLECTION),
        ("index", "-c", COLLECTION, "--graph", "triples", "--graph-llm", spec, "--yes"),
        ("graph", "show", CHAIN.question, "-c", COLLECTION, "--graph", "triples", "--svg", str(out / "graph.svg")),
        ("config",),
        ("config", "--json"),
        ("settings",),
        ("settings", "--json"),
        ("trust", str(cloned)),
        ("trust", "--list", "--json"),
        ("prompts", "show"),
        ("prompts", "copy", str(out / "prompts.yaml")),
        ("prompts", "diff", str(out / "prompts.yaml")),
        ("new", "judge", "kept_secret"),
        ("doctor",),
        ("doctor", "--json"),
        ("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread, "--html", files["html"], "--json"),
        ("ask", CHAIN.question, "-c", COLLECTION, "--system", "react"),
        ("tree", thread, *drawn, "--graphml", graphml),
        ("calls", thread, "--full"),
        ("fork", thread, "--node", "1#1", "--set", "drop"),
        ("diff", thread, thread, "--html", str(out / "diff.html")),
        ("explain", thread, "--yes"),
        ("threads", "--json"),
        ("collections", "--json"),
        ("chat", "-c", COLLECTION, "--conversation", "s", "--web-or-rag"),
        ("conversations", "list", "--json"),
        ("conversations", "show", "s"),
        ("conversations", "draw", "s", *drawn),
        ("conversations", "backfill"),
        ("conversations", "expire", "--dry-run"),
        ("eval", "run", "--dataset", f"standards:{data / 'qa.jsonl'}", "--config", config, "--out", run),
        ("eval", "ragas", run, "--llm", spec, "--embeddings", embed, "--metrics", "answer_relevancy,faithfulness"),
        ("eval", "score", run, "--metric", "llm_correctness", "--llm", spec),
        ("eval", "report", run),
        ("eval", "compare", run),
        ("eval", "plan", run),
        ("eval", "metrics"),
        ("label", run, "--annotator", "me", "--summary"),
        ("export", run, "--what", "judge", "--any-split", "--out", str(out / "judge.jsonl")),
        ("eval", "submission", "--out", str(out / "submission"), run),  # which is refused: the run is of another set
        ("eval", "record", str(out / "recorded"), "--dataset", mills, "--config", config, "--limit", "2"),
        ("replay", str(out / "recorded"), "--html", str(out / "replay.html"), "--budget", "8"),
        ("eval", "calibrate", "--dataset", mills, "--judge-llm", with_secrets(f"{model_url}#scripted", "calibrate")),
        ("eval", "fetch"),
        ("conversations", "delete", "s", "--yes"),
        ("keys", "add", "ada"),
        ("keys", "list", "--json"),
        ("keys", "revoke", "ada"),
        ("serve", "--host", "0.0.0.0"),  # which is refused without a key
        ("demo", "--scripted", "--data", "nowhere", "--out", str(out)),
    ]


@pytest.mark.slow
def test_every_command_keeps_every_secret(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: tuple[Callable[..., int], dict[str, bytes]],
    secrets: dict[str, str],
    scripted: ScriptedServer,
    lite_server: LiteServer,
    data: Path,
) -> None:
    run, streams = said
    home, out = tmp_path / "home", tmp_path / "out"
    out.mkdir()
    monkeypatch.setenv("JUDGETREE_HOME", str(home))
    with serve_searxng() as searxng, serve_rerank() as rerank:
        plant(monkeypatch, scripted.base_url, searxng.url, lite_server.uri)
        config = write_experiment(data / "experiment.yaml", scripted.base_url, rerank.url)
        commands = commands_of(data, out, config, scripted.base_url)
        ended = {arguments: run(*arguments, typed=f"{CHAIN.question}\n/tree\n") for arguments in commands}
        changed = {place: f"{password}-new" for place, password in PASSWORDS.items()}
        monkeypatch.setattr("tests.app.test_secrets.PASSWORDS", changed)
        plant(monkeypatch, scripted.base_url, searxng.url, lite_server.uri)
        write_experiment(data / "experiment.yaml", scripted.base_url, rerank.url)
        for name in ("index", "ask", "eval run"):  # all is found as it was left
            again = next(arguments for arguments in commands if " ".join(arguments).startswith(name))
            assert run(*again) == 0, list(streams.values())[-1]
        assert b"0 embedded now" in list(streams.values())[-3]
        assert b"0 asked, 6 kept" in list(streams.values())[-1]
    with serve_echoes() as echo:  # which scores what was answered
        spec = with_secrets(f"{echo.url}/v1#scripted", "ragas")
        run("eval", "ragas", str(out / "run"), "--llm", spec, "--cache", "off", "--metrics", "answer_correctness")
        run("eval", "report", str(out / "run"))
    assert any(PASSWORDS["ragas"] in sent for sent in echo.sent)
    leaves = {name for name, command in every_command().items() if not hasattr(command, "commands")}
    given = [" ".join(command) for command in commands]
    assert [name for name in leaves if not any(f"{words} ".startswith(f"{name} ") for words in given)] == []
    failed = {" ".join(arguments[:3]): status for arguments, status in ended.items() if status}
    refused = {"demo --scripted --data", "eval calibrate --dataset", "eval submission --out", "serve --host 0.0.0.0"}
    assert set(failed) <= refused, streams
    assert any("Basic" in key for key in rerank.keys), "the password was sent where it belongs"
    files = files_below(home, out, Path.cwd(), lite_server.folder)
    assert {Path(name).name for name in files} >= {"vectors.sqlite", "checkpoints.sqlite", "completions.sqlite"}
    assert {Path(name).suffix for name in files} >= {".svg", ".html", ".json", ".graphml", ".sqlite"}
    assert leaks(secrets, {**files, **streams}) == []


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 500, 200])
def test_no_command_repeats_what_a_server_echoes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: tuple[Callable[..., int], dict[str, bytes]],
    secrets: dict[str, str],
    home: Path,
    data: Path,
    status: int,
) -> None:
    run, streams = said
    out = tmp_path / "out"
    out.mkdir()
    with serve_echoes() as echo:
        echo.status = status
        plant(monkeypatch, f"{echo.url}/v1", echo.url, str(home / "milvus.db"))
        config = write_experiment(data / "experiment.yaml", f"{echo.url}/v1", f"{echo.url}/rerank")
        monkeypatch.setenv("JUDGETREE_LLM_API_KEY", secrets["JUDGETREE_LLM_API_KEY"])
        commands = commands_of(data, out, config, f"{echo.url}/v1")
        asking = [words for words in commands if words[0] in ("doctor", "ask", "chat") or {*words[1:2]} & {*ASKING}]
        for arguments in [commands[0], *asking[:3]]:
            run(*arguments, typed=f"{CHAIN.question}\n")
        monkeypatch.setenv("JUDGETREE_EMBEDDINGS", "local:use")  # so that the other models are reached
        for arguments in asking[2:]:
            run(*arguments, typed=f"{CHAIN.question}\n")
        run("--debug", "ask", CHAIN.question, "--system", "llm")
        for key in (secrets["JUDGETREE_LLM_API_KEY"], SHORT):
            monkeypatch.setenv("JUDGETREE_LLM", f"{echo.url}/v1#keyed")
            monkeypatch.setenv("JUDGETREE_LLM_API_KEY", key)
            run("ask", CHAIN.question, "--system", "llm", "--thread-id", "keyed")
            run("--debug", "ask", CHAIN.question, "--system", "llm")
            run("calls", "keyed", "--full")
    sent = unquote("\n".join(echo.sent))
    for place in ("llm", "llm-query", "embeddings", "JUDGETREE_LLM_API_KEY", "calibrate"):
        assert secrets[place] in sent, f"{place} was sent nowhere"
    assert SHORT in sent
    texts = {**files_below(home, out, Path.cwd()), **streams}
    assert leaks(secrets, texts) == []
    short = [name for name, text in streams.items() if "--system llm" in name and SHORT.encode() in text]
    assert short == []
    assert any(b"***" in text for text in streams.values()), "what was echoed is told, without the secrets"


def test_another_password_changes_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "http://127.0.0.1:9/v1", "http://127.0.0.1:9", "http://127.0.0.1:9")
    before = load_settings()
    monkeypatch.setattr("tests.app.test_secrets.PASSWORDS", dict.fromkeys(PLACES, "another"))
    plant(monkeypatch, "http://127.0.0.1:9/v1", "http://127.0.0.1:9", "http://127.0.0.1:9")
    after = load_settings()
    assert before == after
    assert "another" in after.llm.revealed()
    assert urlsplit(after.llm).username is None
