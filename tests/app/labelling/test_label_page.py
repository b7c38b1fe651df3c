"""The page on which a run is labelled: who may ask its server, and what an annotator sees and types."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from judgetree.app.labelling.server import LabelServer
from judgetree.evaluation.labels.labelling import Labelling
from judgetree.evaluation.labels.store import LabelStore
from judgetree.modules.errors import SettingsError
from tests.app.conftest import command
from tests.driver import Page, browser, needs_driver
from tests.eval.run_writer import ATTACK, RunWriter
from tests.html_pages import allow_own_script_and_style_alone, ask_nothing_outside


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    RunWriter(folder).fill()
    return folder


@pytest.fixture
def served(run: Path) -> Iterator[LabelServer]:
    with LabelServer(Labelling(run, f"ada {ATTACK}")) as server:
        yield server


def saved(run: Path) -> list[tuple[object, str]]:
    return [(label.score, label.note) for label in LabelStore(run).read()]


# --- who may ask ---


def asked(
    server: LabelServer, method: str, path: str = "", *, content: object = None, **headers: str
) -> httpx.Response:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.request(method, f"{server.url}{path}", content=body, headers=named, trust_env=False, timeout=60)


def own(server: LabelServer) -> dict[str, str]:
    return {"Origin": server.url.rsplit("/", 2)[0], "Content_Type": "application/json"}


def test_the_page_is_sealed_and_holds_no_verdict(served: LabelServer, run: Path) -> None:
    reply = asked(served, "GET")
    assert reply.status_code == 200
    ask_nothing_outside(reply.text)
    allow_own_script_and_style_alone(reply.text)
    assert "connect-src 'self'" in reply.text
    assert reply.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert reply.headers["Referrer-Policy"] == "no-referrer"
    assert reply.headers["Cache-Control"] == "no-store"
    for secret in ("the judge said", "; gold: ", '"verdict"'):
        assert secret not in reply.text
    assert "Access-Control-Allow-Origin" not in reply.headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::1]", ""])
def test_another_name_for_this_machine_is_refused(served: LabelServer, host: str) -> None:
    reply = asked(served, "GET", Host=host)
    assert reply.status_code == 403
    assert "passage" not in reply.text


def test_a_tunnel_on_another_port_may_ask(served: LabelServer) -> None:
    assert asked(served, "GET", Host="localhost:9000").status_code == 200


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "/x/", "/%2e%2e/label"])
def test_without_the_token_there_is_nothing(served: LabelServer, path: str) -> None:
    address = served.url.rsplit("/", 2)[0]
    assert httpx.get(f"{address}{path}", trust_env=False, timeout=60).status_code == 404
    assert httpx.post(f"{address}/label", json={}, trust_env=False, timeout=60).status_code == 404


def test_every_server_has_a_token_of_its_own(run: Path) -> None:
    work = Labelling(run, "ada")
    with LabelServer(work) as one, LabelServer(work) as two:
        tokens = {server.url.split("/")[3] for server in (one, two)}
        assert len(tokens) == 2
        assert min(map(len, tokens)) >= 43
        with pytest.raises(SettingsError, match="--port"):
            LabelServer(work, port=int(one.url.split("/")[2].split(":")[1]))


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_another_page_saves_nothing(served: LabelServer, run: Path, changes: dict[str, str], status: int) -> None:
    given = {"passage": Labelling(run, "ada").passages[0].id, "score": 1}
    assert asked(served, "POST", "label", content=given, **{**own(served), **changes}).status_code == status
    assert asked(served, "OPTIONS", "label", **own(served)).status_code == 501
    assert saved(run) == []


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"nonsense", 400),
        (b"{}", 400),
        ({"passage": "0" * 16, "score": 1}, 409),
        ({"passage": "0" * 16, "score": 3}, 400),
        ({"passage": "0" * 16, "score": 1, "verdict": 2}, 400),
        ({"passage": "0" * 16, "score": 1, "seconds": -1}, 400),
        (b" " * 70_000, 413),
    ],
)
def test_what_is_no_label_is_refused(served: LabelServer, run: Path, content: object, status: int) -> None:
    reply = asked(served, "POST", "label", content=content, **own(served))
    assert reply.status_code == status
    assert reply.json()["error"]
    assert saved(run) == []


@pytest.mark.parametrize("fields", ['"score": true', '"score": 1.0', '"score": 1, "seconds": 1e999'])
def test_a_number_that_is_none_is_no_label(served: LabelServer, run: Path, fields: str) -> None:
    passage = Labelling(run, "ada").passages[0].id
    reply = asked(served, "POST", "label", content=f'{{"passage": "{passage}", {fields}}}'.encode(), **own(served))
    assert reply.status_code == 400
    assert saved(run) == []


def test_a_length_of_thousands_of_digits_is_refused(served: LabelServer, run: Path) -> None:
    _, _, host, token, _ = served.url.split("/")
    origin, (name, port) = f"http://{host}", host.split(":")
    with socket.create_connection((name, int(port)), timeout=20) as connection:
        head = {"Host": host, "Origin": origin, "Content-Type": "application/json", "Content-Length": "9" * 5000}
        lines = [f"POST /{token}/label HTTP/1.0", *(f"{key}: {value}" for key, value in head.items()), "", ""]
        connection.sendall("\r\n".join(lines).encode())
        status, _, content = connection.makefile("rb").read().partition(b"\r\n")
    assert b" 413 " in status
    assert b"Send at most" in content
    assert saved(run) == []


# --- what an annotator sees ---


@pytest.fixture
def page(served: LabelServer, tmp_path: Path) -> Iterator[Page]:
    with browser(tmp_path / "browser") as page:
        page.open(served.url)
        yield page


@needs_driver
@pytest.mark.slow
def test_keys_label_passage_after_passage(page: Page, run: Path) -> None:
    work = Labelling(run, "ada")
    assert page.text("#count") == "0 labelled, 4 left"
    assert page.text("#query") == " ".join(work.passages[0].query.replace("\u2028", " ").split())
    assert page.run("return document.getElementById('reveal').hidden") is True
    for number, key in enumerate("12?0"):
        page.press(key)
        page.wait(f"document.getElementById('count').innerText.startsWith('{number + 1} ')")
    assert page.run("return document.getElementById('done').hidden") is False
    assert saved(run) == [(1, ""), (2, ""), (None, ""), (0, "")]
    assert [label.passage for label in LabelStore(run).read()] == list(work.passages)
    assert "Saved 0" in page.text("#last")

    page.press("ArrowLeft")
    assert "You said 0; the judge said" in page.text("#reveal")
    assert page.run("return document.querySelectorAll('[aria-pressed=true]')[0].dataset.key") == "0"
    page.press("n")
    for key in "1 no":  # a digit in a note is no score
        page.press(key)
    page.press("Enter")
    page.press("1")
    page.wait("document.getElementById('reveal').innerText.startsWith('You said 1')")
    assert saved(run)[4:] == [(1, "1 no")]
    assert page.run("return document.title") != "owned"
    assert [said for said in page.console() if "favicon" not in said] == []


_OTHER_SITE = """
const done = arguments[0], found = {};
const body = JSON.stringify({passage: "PASSAGE", score: 1});
const json = {"Content-Type": "application/json"};
const attempt = async (name, path, options) => {
  try { await fetch("URL" + path, options); found[name] = "answered"; } catch (error) { found[name] = "refused"; }
};
(async () => {
  await attempt("plain", "label", {method: "POST", mode: "no-cors", body});
  await attempt("json", "label", {method: "POST", headers: json, body});
  await attempt("read", "", {});
  const frame = document.body.appendChild(document.createElement("iframe"));
  const loaded = new Promise((go) => frame.addEventListener("load", go));
  frame.src = "URL";
  await loaded;
  found.frame = frame.contentWindow.length === 0 && frame.contentDocument === null ? "refused" : "shown";
  done(found);
})();
"""


@needs_driver
@pytest.mark.slow
def test_a_page_of_another_site_gets_nothing_even_with_the_token(
    served: LabelServer, run: Path, tmp_path: Path
) -> None:
    passage = Labelling(run, "ada").passages[0].id
    with LabelServer(Labelling(run, "bo")) as other, browser(tmp_path / "browser") as page:
        page.open(f"{other.url.rsplit('/', 2)[0]}/nothing")
        found = page.run_async(_OTHER_SITE.replace("PASSAGE", passage).replace("URL", served.url))
        said = page.console()
    assert found == {"plain": "refused", "json": "refused", "read": "refused", "frame": "refused"}
    assert any("frame-ancestors" in line for line in said)
    assert saved(run) == []


@needs_driver
@pytest.mark.slow
def test_buttons_label_and_a_reload_continues(page: Page, served: LabelServer, run: Path) -> None:
    page.click("#scores button[data-key='2']")
    page.wait("document.getElementById('count').innerText.startsWith('1 ')")
    page.open(served.url)
    assert page.text("#count") == "1 labelled, 3 left"
    page.click("#back")
    assert "You said 2" in page.text("#reveal")


@needs_driver
@pytest.mark.slow
def test_a_label_that_is_not_saved_is_told(run: Path, tmp_path: Path) -> None:
    arguments = command("label", str(run), "--annotator", "ada")
    with (
        browser(tmp_path / "browser") as page,
        subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        page.open(next(line.split()[-1] for line in process.stderr if line.startswith("Label at ")))
        process.kill()
        process.wait()
        page.press("1")
        page.wait("!document.getElementById('alarm').hidden")
        assert "the command has ended" in page.text("#alarm")
        assert page.text("#count") == "0 labelled, 4 left"
    assert saved(run) == []
