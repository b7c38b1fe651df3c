"""The pages in docs/reference are what the code says, and leave out nothing that is public."""

from __future__ import annotations

import difflib
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import judgetree
from judgetree import evaluation, testing
from judgetree.modules import errors
from judgetree.modules.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
PAGES = DOCS / "reference"


def page(name: str) -> str:
    return (PAGES / name).read_text(encoding="utf-8")


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("reference")


def test_the_pages_are_what_the_code_says(reference: ModuleType) -> None:
    for name in reference.BODIES:
        there, now = (text.splitlines() for text in (page(name), reference.written(PAGES / name)))
        changed = "\n".join(list(difflib.unified_diff(there, now, n=0, lineterm=""))[3:9]) if there != now else ""
        assert there == now, f"docs/reference/{name} is out of date. Run: python docs/reference.py\n{changed}"


def test_a_page_without_its_marks_is_not_overwritten(reference: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "keys.md").write_text("# Keys\n\nBy hand.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="needs two lines"):
        reference.written(tmp_path / "keys.md")


def test_the_settings_page_has_every_setting_with_type_default_and_description() -> None:
    rows = [line.strip("| ").split(" | ") for line in page("settings.md").splitlines() if line.startswith("| `JUDGE")]
    assert [row[0] for row in rows] == [f"`JUDGETREE_{name.upper()}`" for name in Settings.model_fields]
    cells = {row[0]: row for row in rows}
    assert cells["`JUDGETREE_RETRIES`"][1:3] == ["integer ≥ 0", "`3`"]
    assert cells["`JUDGETREE_DURABILITY`"][1] == "`sync`, `async`, `exit`"
    assert cells["`JUDGETREE_JUDGE_NEEDED_THRESHOLD`"][1] == "number ≥ 0, ≤ 1"
    assert all(row[1] and row[3] for row in rows)


def test_the_page_of_commands_has_every_command_and_option() -> None:
    commands = page("commands.md")
    assert {"## judgetree ask", "### judgetree eval run", "### judgetree conversations list"} <= set(
        commands.splitlines()
    )
    assert "`-c, --collection NAME`" in commands
    assert re.search(r"--system.*baselines", commands)


def test_the_page_of_prompts_has_their_placeholders_and_texts() -> None:
    judge = page("prompts.md").partition("\n### judge\n")[2].partition("\n### ")[0]
    assert "Placeholders: `{query}`, `{passage}`." in judge
    assert "    Passage:\n    {passage}\n```" in judge


@pytest.mark.parametrize("decision", sorted((DOCS / "decisions").glob("0*.md")), ids=lambda decision: decision.stem)
def test_a_decision_is_short_and_has_its_four_parts(decision: Path) -> None:
    text = decision.read_text(encoding="utf-8")
    assert len(text.encode()) <= 5000
    parts = re.findall(r"^\*\*(Question|Choice|Rejected|Consequence)\b", text, re.MULTILINE)
    assert parts == ["Question", "Choice", "Rejected", "Consequence"]


def test_the_page_of_decisions_lists_all_of_at_most_25() -> None:
    names = sorted(page.name for page in (DOCS / "decisions").glob("0*.md"))
    listed = re.findall(r"\((0\S+\.md)\)", (DOCS / "decisions" / "README.md").read_text(encoding="utf-8"))
    assert listed == names
    assert len(names) <= 25


def test_the_page_of_python_names_has_every_public_name() -> None:
    named = set(re.findall(r"^### (\w+)$", page("python.md"), re.MULTILINE))
    public = {name for package in (judgetree, evaluation, testing) for name in package.__all__ if name[0] != "_"}
    raised = {name for name, value in vars(errors).items() if getattr(value, "__module__", "") == errors.__name__}
    assert public - named == set()
    assert {name for name in raised if name.endswith("Error")} - named == set()


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        (
            "RagSession",
            [
                '    system: str | GraphBuilder = "judge",\n',
                "**Args**\n\n- `collection`: Name of the collection;",
                "    print(session.ask(",
                "- `retriever`: What is searched in place of the collection",
                "#### RagSession.fork\n",
                "Async twin: `aask`.",
            ],
        ),
        (
            "CallOptions",
            ["@dataclass(frozen=True, kw_only=True)\nclass CallOptions\n", "- `temperature: float | None = None`: S"],
        ),
        ("aask", ["Async twin of [`ask`](#ask)."]),
        ("ModelSetupError", ["class ModelSetupError(ModelCallError, UserError)"]),
        ("DATASETS", ["Names: `questions`, `hotpotqa`, "]),
        ("nodes", ["#### nodes.retrieve\n"]),
        ("FoundPassage", ["In `judgetree.evaluation.labels.store`."]),
    ],
)
def test_an_entry_has_signature_docstring_and_members(entry: str, parts: list[str]) -> None:
    text = page("python.md").partition(f"\n### {entry}\n")[2].partition("\n### ")[0]
    assert [part for part in parts if part not in text] == []
