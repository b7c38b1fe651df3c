"""One word for one thing: names that were given up stay out of code and documentation (the glossary has the words)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
SOURCES = sorted(path for room in ("modules", "graphs", "eval", "app", "src") for path in (REPO / room).rglob("*.py"))
TEXTS = sorted([REPO / "README.md", *(REPO / "docs").rglob("*.md"), *(REPO / "notebooks").glob("*.ipynb")])
RETIRED = {"session_id", "ensure_weights", "Weights", "WeightsPart"}
OTHERS_SESSIONS = {"requests.py", "question.py", "turn_lines.py"}
"""Files of ``app/server/knowledge``, whose clients call a conversation's name so."""
OTHERS_MODES = {"modules/llm/cache.py"}
"""Where a mode is one of the cache of model calls."""
OTHERS_CONTEXTS = {"eval/datasets/hotpotqa.py", "eval/datasets/quac.py", "app/scripted/ragas.py"}
"""Layouts of others, whose passages are called contexts."""


@cache
def names(path: Path) -> list[str]:
    """Each name that a file defines: functions, classes, parameters, variables, fields."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.arg):
            found.append(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.append(node.id)
    return found


@pytest.mark.parametrize("word", sorted(RETIRED))
def test_a_retired_name_is_in_no_source_and_no_text(word: str) -> None:
    holding = [path for path in (*SOURCES, *TEXTS) if re.search(rf"\b{word}\b", path.read_text(encoding="utf-8"))]
    foreign = {("Weights", "rerank.py"), *(("session_id", name) for name in OTHERS_SESSIONS)}
    assert [path for path in holding if (word, path.name) not in foreign] == []


def test_no_system_is_called_a_mode() -> None:
    found = {path.relative_to(REPO).as_posix() for path in SOURCES if "mode" in names(path)}
    assert found <= OTHERS_MODES
    assert [path for path in TEXTS if re.search(r"--mode\b|\bmode=", path.read_text(encoding="utf-8"))] == []


def annotated(path: Path, name: str) -> Iterator[str]:
    """The annotations of a name, where it is a parameter or a field."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        is_field = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name
        if (
            isinstance(node, ast.arg | ast.AnnAssign)
            and node.annotation
            and (is_field or getattr(node, "arg", "") == name)
        ):
            yield ast.unparse(node.annotation)


def test_evidence_is_not_called_context() -> None:
    """A name ``context`` that is annotated as text would be evidence."""
    texts = re.compile(r"\bstr\b|Text|Filled")
    found = [path for path in SOURCES if any(map(texts.search, annotated(path, "context")))]
    assert {path.relative_to(REPO).as_posix() for path in found} <= OTHERS_CONTEXTS


@pytest.mark.parametrize("name", ["Progress", "Vector", "StageProgress", "ByteProgress"])
def test_a_type_has_one_home(name: str) -> None:
    assert sum(names(path).count(name) for path in SOURCES) == 1


def test_the_glossary_is_in_order_and_names_a_word_once() -> None:
    glossary = (
        (REPO / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8").partition("## Glossary")[2]
    )
    words = re.findall(r"^\| ([\w -]+?) \|", glossary, re.MULTILINE)[1:]
    assert len(words) > 20
    assert words == sorted(set(words), key=str.lower)
