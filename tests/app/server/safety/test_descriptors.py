"""Connections and open files: a server takes no more connections than it may open files for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from judgetree.app.server.serving.options import ServerOptions

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
