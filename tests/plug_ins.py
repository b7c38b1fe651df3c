"""Packages with plug-ins, installed for one test."""

from __future__ import annotations

from pathlib import Path

import pytest


def install_plug_in(monkeypatch: pytest.MonkeyPatch, folder: Path, *, group: str, name: str, value: str) -> None:
    """Install a package into a folder, which is then one of ``sys.path``."""
    info = folder / "some_plug_ins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plug-ins\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
