"""The rooms: imports point one way, and every package is in the wheel."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
ROOMS = ("modules", "graphs", "eval", "app")
PYPROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGE_DIRS: dict[str, str] = PYPROJECT["tool"]["setuptools"]["package-dir"]
ROOM_OF_PACKAGE = {"modules": "modules", "graphs": "graphs", "evaluation": "eval", "app": "app"}


def sources(room: str) -> list[Path]:
    return sorted((REPO / room).rglob("*.py"))


def imported_rooms(path: Path) -> set[str]:
    """Rooms that a file imports from, whether relatively or by the package's name."""
    depth = len(path.relative_to(REPO).parts) - 1
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.level > depth:
            names = [node.module] if node.module else [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("judgetree."):
            names = [(node.module or "").removeprefix("judgetree.")]
        elif isinstance(node, ast.Import):
            names = [a.name.removeprefix("judgetree.") for a in node.names if a.name.startswith("judgetree.")]
        found |= {ROOM_OF_PACKAGE[name.split(".")[0]] for name in names if name.split(".")[0] in ROOM_OF_PACKAGE}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room: str) -> None:
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    climbing = {str(path.relative_to(REPO)): imported_rooms(path) - allowed for path in sources(room)}
    assert not {path: rooms for path, rooms in climbing.items() if rooms}


def test_the_check_sees_a_climbing_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "REPO", tmp_path)
    (tmp_path / "modules").mkdir()
    path = tmp_path / "modules" / "climber.py"
    path.write_text("from ..graphs.state import RagState\nfrom judgetree.app import cli\n")
    assert imported_rooms(path) == {"graphs", "app"}


def test_modules_know_nothing_of_langgraph() -> None:
    knowing = [path.name for path in sources("modules") if "langgraph" in path.read_text(encoding="utf-8")]
    assert knowing == []


def test_every_folder_with_code_is_a_listed_package() -> None:
    folders = {path.parent.relative_to(REPO).as_posix() for room in ROOMS for path in sources(room)}
    assert folders | {"src/judgetree"} == set(PACKAGE_DIRS.values())
    assert sorted(PACKAGE_DIRS) == sorted(PYPROJECT["tool"]["setuptools"]["packages"])


def test_every_dependency_is_bounded_on_both_sides() -> None:
    project = PYPROJECT["project"]
    listed = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    unbounded = [r for r in listed if "==" not in r and not (">=" in r and "<" in r.replace("<=", ""))]
    assert unbounded == []
