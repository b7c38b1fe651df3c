"""Whatever a foreign server sends, each door ends with a typed error, in time, on a free loop, in little memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from .compressed import PACKED
from .doors import DOORS, TYPED
from .servers import OTHER, Misbehaviour, misbehaving
from .watch import survive

TIMEOUT_S = 0.5
LIMIT_S = 20.0
SKIPPED = frozenset((name, "download") for name in ("drips", "keeps-alive", "silent", "endless-header"))
"""A download may take as long as it likes, as long as something comes; a person sees its progress, and stops it."""
CHAT_DOORS = frozenset({"chat", "stream"})
"""``test_servers`` plays the others there."""


def _ends(door: str, behave: Misbehaviour, folder: Path) -> None:
    async def call(base_url: str) -> None:
        with pytest.raises(TYPED) as caught:
            await DOORS[door](base_url, folder, TIMEOUT_S)
        assert 10 < len(str(caught.value)) < 2_000

    with misbehaving(behave) as server:
        survive(call(server.base_url), limit_s=LIMIT_S)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", PACKED)
def test_a_packed_reply_is_refused_unread(tmp_path: Path, door: str, name: str) -> None:
    _ends(door, PACKED[name], tmp_path)


@pytest.mark.parametrize("door", [door for door in DOORS if door not in CHAT_DOORS])
@pytest.mark.parametrize("name", OTHER)
def test_a_server_that_misbehaves_fails_every_door_in_time(tmp_path: Path, door: str, name: str) -> None:
    if (name, door) in SKIPPED:
        pytest.skip("a download has no time limit")
    _ends(door, OTHER[name], tmp_path)
