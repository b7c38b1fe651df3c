"""The Dockerfile: what it copies, as whom it runs, and whether its health check tells a sick server."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY, REPO, dockerfile, of

PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent))


@pytest.mark.skipif(HADOLINT is None, reason="hadolint has wheels for Linux only")
def test_hadolint_finds_nothing() -> None:
    assert HADOLINT is not None
    done = subprocess.run([HADOLINT, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_it_copies_what_the_wheel_is_made_of_and_nothing_else() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignore[1] == "*"
    let_in = {line[1:] for line in ignore if line.startswith("!")}
    copied = {name.rstrip("/") for each in of("COPY") if "--from" not in each.rest for name in each.rest.split()[:-1]}
    rooms = {folder.partition("/")[0] for folder in PROJECT["tool"]["setuptools"]["package-dir"].values()}
    files = {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"], "pyproject.toml", "constraints.txt"}
    assert copied == let_in == rooms | files


def test_it_installs_tested_versions_of_what_a_server_needs() -> None:
    commands = [each.rest for each in of("RUN") if "pip install" in each.rest]
    assert all("--constraint constraints.txt" in command for command in commands)
    (extras,) = re.findall(r'"\.\[([a-z,]+)\]"', commands[-1])
    assert set(extras.split(",")) == {"embedders", "postgres", "server", "telemetry"}
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])


def test_both_stages_have_the_same_python_and_the_last_one_is_not_root() -> None:
    images = {each.rest.partition(" ")[0] for each in of("FROM")}
    (image,) = images
    version = re.fullmatch(r"python:(\d+\.\d+)\.\d+-slim-\w+", image)
    assert version
    assert f"Programming Language :: Python :: {version[1]}" in PROJECT["project"]["classifiers"]
    last = dockerfile()[[each.name for each in dockerfile()].index("FROM", 1) :]
    users = [each.rest for each in last if each.name == "USER"]
    assert users == ["10001:10001"]
    assert [each.name for each in last].index("USER") < [each.name for each in last].index("ENTRYPOINT")


class Sick(BaseHTTPRequestHandler):
    status = 503

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Well(Sick):
    status = 200


@pytest.fixture
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), request.param) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("port", "status"), [(Well, 0), (Sick, 1)], indirect=["port"])
def test_the_health_check_fails_with_the_server(port: int, status: int) -> None:
    ((python, option, code),) = (each.words for each in of("HEALTHCHECK"))
    assert (python, option) == ("python", "-c")
    done = subprocess.run([sys.executable, "-c", code.replace("8808", str(port))], check=False)
    assert done.returncode == status
