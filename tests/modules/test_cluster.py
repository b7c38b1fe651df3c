"""Ray that cannot be reached is told, and within seconds."""

from __future__ import annotations

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
