"""Connections and open files: a server takes no more connections than it may open files for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from judgetree.app.server.serving.options import ServerOptions
from tests.app.conftest import command

FITTED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, int(sys.argv[1])), int(sys.argv[1])))
from judgetree.app.server.safety.descriptors import within_descriptors
from judgetree.app.server.serving.options import ServerOptions
print(within_descriptors(ServerOptions()).max_connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
@pytest.mark.parametrize(
    ("hard", "said"),
    [(4096, f"{ServerOptions().max_connections} 3480"), (1000, "568 1000"), (400, "too few for a server")],
)
@pytest.mark.slow
def test_connections_keep_within_open_files(hard: int, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", FITTED, str(hard)], capture_output=True, text=True, check=False)
    assert said in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
@pytest.mark.parametrize(("debug", "form"), [((), ()), (("--debug",), ()), ((), ("--log-json",))])
@pytest.mark.slow
def test_a_start_says_once_that_it_takes_fewer_connections(debug: tuple[str, ...], form: tuple[str, ...]) -> None:
    refused = command(*debug, "serve", "--host", "0.0.0.0", *form)  # for want of a key, after the warning
    limited = ["sh", "-c", 'ulimit -n 1000 && exec "$@"', "sh", *refused]
    said = subprocess.run(limited, capture_output=True, text=True, check=False).stderr
    assert "demands a key" in " ".join(said.split())
    assert said.count("568 connections at once") == 1
