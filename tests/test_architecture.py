"""The rooms: imports point one way, and every package is in the wheel."""

from __future__ import annotations

import ast
import functools
import tomllib
from collections import Counter
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
ROOMS = ("modules", "graphs", "eval", "app")
PYPROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGE_DIRS: dict[str, str] = PYPROJECT["tool"]["setuptools"]["package-dir"]
ROOM_OF_PACKAGE = {"modules": "modules", "graphs": "graphs", "evaluation": "eval", "app": "app"}


def sources(room: str) -> list[Path]:
    """Code, and the stubs that list what a package exports."""
    return sorted([*(REPO / room).rglob("*.py"), *(REPO / room).rglob("*.pyi")])


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


# --- no circles, no crowds ---

PACKAGES = {name.removeprefix("judgetree."): folder for name, folder in PACKAGE_DIRS.items() if name != "judgetree"}


def imported_files(path: Path, files: set[Path]) -> set[Path]:
    """The project's files that a file imports, also for types alone and within functions."""
    package = next(name for name, folder in PACKAGES.items() if REPO / folder == path.parent)
    found: set[Path] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            above = ["judgetree", *package.split(".")]
            name = ".".join([*above[: len(above) - node.level + 1], *filter(None, [node.module])])
        else:
            name = node.module or ""
        if not name.startswith("judgetree."):
            continue
        for candidate in {name, *(f"{name}.{alias.name}" for alias in node.names)}:
            room, _, module = candidate.removeprefix("judgetree.").rpartition(".")
            if room in PACKAGES:
                found |= {REPO / PACKAGES[room] / f"{module}.py"} & files
    return found - {path}


def in_circles(arrows: dict[Path, set[Path]]) -> set[Path]:
    """What is left when everything that imports nothing, or is imported by nothing, was taken away again and again."""
    left = dict(arrows)
    while True:
        imported = set().union(*left.values()) if left else set()
        kept = {one: others & left.keys() for one, others in left.items() if others & left.keys() and one in imported}
        if kept == left:
            return set(left)
        left = kept


@functools.cache
def arrows_of_files() -> dict[Path, set[Path]]:
    files = {path for room in ROOMS for path in sources(room)}
    return {path: imported_files(path, files) for path in files}


def test_no_file_is_in_a_circle_of_imports() -> None:
    assert in_circles(arrows_of_files()) == set()


def test_no_folder_is_in_a_circle_of_imports() -> None:
    arrows: dict[Path, set[Path]] = {}
    for path, others in arrows_of_files().items():
        arrows.setdefault(path.parent, set()).update(other.parent for other in others if other.parent != path.parent)
    assert in_circles(arrows) == set()


def test_the_check_sees_a_circle() -> None:
    a, b, c, d = (Path(name) for name in "abcd")
    assert in_circles({a: {b}, b: {c}, c: {b}, d: set()}) == {b, c}


def test_no_two_public_classes_share_a_name() -> None:
    """A name that needs its folder to be understood misleads whoever searches for it."""
    homes: dict[str, list[str]] = {}
    for room in ROOMS:
        for path in sources(room):
            for each in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                    homes.setdefault(each.name, []).append(path.relative_to(REPO).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_no_folder_has_more_than_twenty_files() -> None:
    counts = Counter(path.parent.relative_to(REPO).as_posix() for room in ROOMS for path in sources(room))
    assert {folder: count for folder, count in counts.items() if count > 20} == {}
