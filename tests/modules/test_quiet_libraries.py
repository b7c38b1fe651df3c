"""Libraries that report their use to their makers are kept from it, wherever they are loaded."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from judgetree.modules.quiet_libraries import QUIET

REPO = Path(__file__).parents[2]
REPORTING = ("onnxruntime", "ragas", "ray")
IMPORTS = re.compile(rf"^\s*(?:import|from) (?:{'|'.join(REPORTING)})\b", re.MULTILINE)
EMBEDS = """
import sys, time
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.settings import load_settings
create_embeddings("local:minilm", load_settings(home=sys.argv[1]), cache=False).embed_documents(["a text"])
import os
print(os.environ["ORT_DISABLE_TELEMETRY"])
time.sleep(float(sys.argv[2]))
"""


def test_every_file_that_loads_one_keeps_it_quiet() -> None:
    files = [path for room in ("modules", "graphs", "eval", "app") for path in (REPO / room).rglob("*.py")]
    loading = {path.name: path.read_text("utf-8") for path in files if IMPORTS.search(path.read_text("utf-8"))}
    assert {name for name, text in loading.items() if "keep_libraries_quiet()" not in text} - BEHIND == set()
    assert {"minilm.py", "models.py", "cluster.py"} <= loading.keys()
    assert len(QUIET) == len(REPORTING)


BEHIND: set[str] = set()
"""Files that load one only after another file has."""


@pytest.mark.slow
def test_an_embedder_asks_no_proxy_for_anything(tmp_path: Path) -> None:
    """onnxruntime reports some nine seconds after it was loaded."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked: list[bytes] = []

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    asked.append(client.recv(200))

        threading.Thread(target=serve, daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        proxies = {
            name: address for each in ("http_proxy", "https_proxy", "all_proxy") for name in (each, each.upper())
        }
        environment = {"PATH": "", "HOME": str(tmp_path), **proxies}
        command = [sys.executable, "-c", EMBEDS, str(tmp_path / "home"), "12"]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        server.shutdown(socket.SHUT_RDWR)
    assert (ended.stdout.strip(), asked) == ("1", [])
