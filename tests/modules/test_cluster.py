"""Ray that cannot be reached is told, and within seconds."""

from __future__ import annotations

import pytest

from judgetree.modules.cluster import connected
from judgetree.modules.errors import SettingsError

pytest.importorskip("ray")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999", "nowhere"])
def test_an_address_without_a_cluster_is_refused(address: str) -> None:
    with (
        pytest.raises(SettingsError, match=rf"Ray cannot be reached at '{address}': .*--workers N"),
        connected(address, workers=1),
    ):
        pass
