"""``judgetree new``: packages that pass their own tests, are known by path and by name, and overwrite nothing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from judgetree import testing
from judgetree.app.commands.new.skeletons import SKELETONS, SkeletonKind, files_of
from judgetree.modules.parts import entry_point_group, find_part
from tests.app.conftest import Cli

TIMEOUT_S = 120


@pytest.fixture
def packages(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a package of each kind, named own_KIND."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for kind in SKELETONS:
        written = cli("new", kind, f"own_{kind}").ok()
        folder = Path(f"judgetree-own-{kind}")
        assert written.out.split() == [str(folder / file) for file in files_of(kind, f"own_{kind}")]
        assert f"python -m pytest {folder}" in written.err
    yield tmp_path
    for kind in SKELETONS:
        sys.modules.pop(f"own_{kind}", None)


def test_there_is_one_for_each_kind_that_has_a_check() -> None:
    checks = {name.removeprefix("check_") for name in testing.__all__ if name.startswith("check_")}
    assert set(SKELETONS) == set(get_args(SkeletonKind)) == checks - {"chat_model"}


@pytest.mark.slow
def test_the_packages_of_all_kinds_pass_their_own_tests(packages: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stdout
    assert f"{len(SKELETONS)} passed" in done.stdout


def test_the_packages_of_all_kinds_are_clean_and_found_by_their_entry_points(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for check in (["check", "--select", "E,F,W,N,UP,B,C4,SIM,RET,D1"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *check, "--isolated", "--no-cache", "--line-length", "120", "."]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    for kind in SKELETONS:
        folder = packages / f"judgetree-own-{kind}"
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        (value,) = project["entry-points"][entry_point_group(kind)].values()
        monkeypatch.chdir(folder)
        assert find_part(kind, value).source


def test_a_folder_that_is_there_is_left_alone(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cli("new", "judge", "left_alone").ok()
    file = tmp_path / "judgetree-left-alone" / "left_alone.py"
    file.write_text("changed")
    cli("new", "metric", "left_alone").refused("judgetree-left-alone exists. Give another NAME")
    assert file.read_text() == "changed"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("My-Judge", "is no name of a module. Give small letters"),
        ("../mine", "is no name of a module"),
        ("class", "is no name of a module"),
        ("json", "is that of a module which Python has already"),
        ("generated", "is that of a judge of judgetree"),
    ],
)
def test_a_name_that_is_no_module_of_ones_own_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("new", "judge", name).refused(said)
    assert list(tmp_path.iterdir()) == []
