"""Whatever is wrong with the TLS of a foreign server, each door says so in time, and sends nothing in the clear."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .doors import DOORS, TYPED
from .tls import FAULTS, faulty_tls
from .watch import survive

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 0.5
LIMIT_S = 30.0
SKIPPED = frozenset((name, "download") for name in ("silent-handshake", "endless-hello"))
"""A download waits for half a minute, and longer for what sends on; a person sees its progress, and stops it."""


def _fails(door: str, base_url: str, folder: Path) -> str:
    async def call() -> str:
        with pytest.raises(TYPED) as caught:
            await DOORS[door](base_url, folder, TIMEOUT_S)
        return str(caught.value)

    return survive(call(), limit_s=LIMIT_S)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", FAULTS)
def test_faulty_tls_is_named_in_time(tmp_path: Path, door: str, name: str) -> None:
    if (name, door) in SKIPPED:
        pytest.skip("a download has no time limit")
    with faulty_tls(FAULTS[name], tmp_path) as place:
        message = _fails(door, f"https://{place}/v1", tmp_path)
    assert "127.0.0.1" in message
    if name == "self-signed":
        assert "self-signed certificate" in message or "self signed certificate" in message


@pytest.mark.parametrize("door", DOORS)
def test_a_tls_port_asked_without_tls_is_named(tmp_path: Path, door: str) -> None:
    with faulty_tls(FAULTS["self-signed"], tmp_path) as place:
        assert "127.0.0.1" in _fails(door, f"http://{place}/v1", tmp_path)


BROKEN = {
    "missing": None,
    "no-certificate": b"garbage\n",
    "cut-certificate": b"-----BEGIN CERTIFICATE-----\nMIIB",
    "empty": b"",
}
OPEN_ALL = """
import json, os, sys
from pathlib import Path
from judgetree.modules.background_loop import background_loop
from tests.attacks.doors import DOORS
said = {}
for file in sys.argv[3:]:
    os.environ["SSL_CERT_FILE"] = file
    for name, door in DOORS.items():
        try:
            background_loop().run(door(sys.argv[1], Path(sys.argv[2]), 2.0))
        except Exception as error:
            said.setdefault(file, {})[name] = [type(error).__name__, str(error)]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said_of_broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    """By file, kind and message of the error at each door; one process opens all."""
    folder = tmp_path_factory.mktemp("authorities")
    for name, content in BROKEN.items():
        if content is not None:
            (folder / name).write_bytes(content)
    files = [str(folder / name) for name in BROKEN]
    command = [sys.executable, "-c", OPEN_ALL, "https://127.0.0.1:9/v1", str(folder), *files]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return dict(json.loads(ran.stdout))


@pytest.mark.parametrize("name", BROKEN)
def test_broken_certificates_of_authorities_are_named(
    name: str, said_of_broken: dict[str, dict[str, list[str]]]
) -> None:
    (file,) = [each for each in said_of_broken if Path(each).name == name]
    assert said_of_broken[file].keys() == DOORS.keys()
    for door, (kind, message) in said_of_broken[file].items():
        assert kind == "SettingsError", (door, message)
        assert f"SSL_CERT_FILE={file!r}" in message
