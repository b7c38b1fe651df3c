"""The documentation: reference pages that leave out nothing, and names on them that exist."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import judgetree
from judgetree import evaluation
from judgetree.modules.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.delitem(sys.modules, "reference", raising=False)
    return importlib.import_module("reference")


def test_the_settings_page_has_every_setting_with_type_default_and_description(reference: ModuleType) -> None:
    rows = [line.strip("| ").split(" | ") for line in reference.settings_table().splitlines()[2:]]
    assert [row[0] for row in rows] == [f"`JUDGETREE_{name.upper()}`" for name in Settings.model_fields]
    cells = {row[0]: row for row in rows}
    assert cells["`JUDGETREE_RETRIES`"][1:3] == ["integer ≥ 0", "`3`"]
    assert cells["`JUDGETREE_DURABILITY`"][1] == "`sync`, `async`, `exit`"
    assert cells["`JUDGETREE_JUDGE_NEEDED_THRESHOLD`"][1] == "number ≥ 0, ≤ 1"
    assert all(row[1] and row[3] for row in rows)


def test_the_page_of_commands_has_every_command_and_option(reference: ModuleType) -> None:
    page = reference.command_sections()
    assert {"## judgetree ask", "## judgetree eval run", "## judgetree conversations list"} <= set(page.splitlines())
    assert "`-c, --collection NAME`" in page
    assert re.search(r"--system.*baselines", page)


@pytest.mark.parametrize("package", [judgetree, evaluation])
def test_the_reference_has_every_public_name(package: ModuleType, reference: ModuleType) -> None:
    page = reference.public_names(package.__name__)
    assert set(re.findall(rf"{re.escape(package.__name__)}\.(\w+)$", page, re.MULTILINE)) == {
        name for name in package.__all__ if not name.startswith("__")
    }


@pytest.mark.parametrize("path", re.findall(r"^judgetree\.[\w.]+$", (DOCS / "api.md").read_text(), re.MULTILINE))
def test_a_listed_type_exists(path: str) -> None:
    home, _, name = path.rpartition(".")
    assert getattr(importlib.import_module(home), name).__doc__


@pytest.mark.parametrize("page", sorted((DOCS / "decisions").glob("0*.md")), ids=lambda page: page.stem)
def test_a_decision_is_short_and_has_its_four_parts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) <= 5000
    parts = re.findall(r"^\*\*(Question|Choice|Rejected|Consequence)\b", text, re.MULTILINE)
    assert parts == ["Question", "Choice", "Rejected", "Consequence"]


def test_the_page_of_decisions_lists_all_of_at_most_25() -> None:
    names = sorted(page.name for page in (DOCS / "decisions").glob("0*.md"))
    listed = re.findall(r"\((0\S+\.md)\)", (DOCS / "decisions" / "README.md").read_text(encoding="utf-8"))
    assert listed == names
    assert len(names) <= 25
