"""Ray that cannot be reached is told, and within seconds."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from judgetree.modules.cluster import connected
from judgetree.modules.errors import SettingsError

pytest.importorskip("ray")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999", "nowhere", ""])
def test_an_address_without_a_cluster_is_refused(address: str) -> None:
    with (
        pytest.raises(SettingsError, match=rf"Ray cannot be reached at '{address}': .*--workers N"),
        connected(address, workers=1),
    ):
        pass


def test_auto_is_refused_as_soon_if_the_cluster_it_finds_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(SettingsError, match=r"reached at 'auto': .*refused"), connected("auto", workers=1):
        pass


HEAD_IS_KILLED = """
import json, os, signal
from pathlib import Path
from judgetree.modules.cluster import HERE, connected
from judgetree.modules.errors import UserError

def processes():  # by id: parent, session
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        yield int(file.parent.name), int(fields[1]), int(fields[3])

try:
    with connected(HERE, workers=1) as ray:
        folder = Path(ray._private.worker._global_node.get_session_dir_path()).parents[1]
        [head] = [pid for pid, parent, session in processes() if parent == os.getpid() and session == pid]
        begun = [pid for pid, _, session in processes() if session == head and pid != head]
        os.kill(head, signal.SIGKILL)
        raise RuntimeError("a worker died")
except UserError as error:
    print(json.dumps({"said": str(error), "begun": begun, "folder": str(folder), "head": head}))
"""


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_head_that_is_killed_is_named_and_leaves_nothing_behind() -> None:
    done = subprocess.run([sys.executable, "-c", HEAD_IS_KILLED], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert f"has ended, since its head, process {found['head']}, was killed" in found["said"]
    assert found["begun"]
    assert [pid for pid in found["begun"] if not has_ended(pid)] == []
    assert not Path(found["folder"]).exists()


DRIVER_IS_KILLED = """
import os, signal
from pathlib import Path
from judgetree.modules.cluster import HERE, connected
with connected(HERE, workers=1) as ray:
    print(Path(ray._private.worker._global_node.get_session_dir_path()).parents[1], flush=True)
    [head] = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    print(head, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_driver_that_is_killed_leaves_no_folder() -> None:
    done = subprocess.run([sys.executable, "-c", DRIVER_IS_KILLED], capture_output=True, text=True, check=False)
    folder, head = done.stdout.split()
    assert has_ended(int(head))
    assert not Path(folder).exists()


def has_ended(pid: int, within_s: float = 30.0) -> bool:
    """Wait for the end of a process that need not be a child."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    ended = bool(waiting.poll(within_s * 1000))
    os.close(process)
    return ended
