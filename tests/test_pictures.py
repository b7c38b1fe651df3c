"""The pictures in docs/images show what the code draws now."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.svg_boxes import words

DOCS = Path(__file__).parents[1] / "docs"


def said(picture: Path) -> str:
    """All words of a picture, without seconds."""
    return re.sub(r"\d+\.\d s\b", "… s", words(ET.parse(picture).getroot()))


@pytest.mark.slow
def test_the_pictures_say_what_the_code_draws_now(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    importlib.import_module("pictures").draw_svgs(tmp_path, tmp_path / "home")
    for name in ("tree.svg", "conversation.svg"):
        outdated = f"docs/images/{name} is out of date. Run: python docs/pictures.py"
        assert said(DOCS / "images" / name) == said(tmp_path / name), outdated
