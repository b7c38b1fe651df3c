"""The wheel: whole, importable from elsewhere, light at import, with a public face that is what it says."""

from __future__ import annotations

import doctest
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

import judgetree
from judgetree import evaluation

REPO = Path(__file__).parents[1]
ROOMS = {"modules": "modules", "graphs": "graphs", "eval": "evaluation", "app": "app"}
FILES = {
    ".".join(("judgetree", package, *path.relative_to(REPO / room).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for room, package in ROOMS.items()
    for path in (REPO / room).rglob("*.py")
    if path.name != "__main__.py"
}
MODULES = sorted(FILES)
WITH_EXAMPLES = [name for name in MODULES if ">>> " in FILES[name].read_text("utf-8")]


@pytest.fixture(scope="session")
def installed_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as an index would give it: sdist, wheel from the sdist, installed into an empty folder."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for part in (*ROOMS, "src"):
        shutil.copytree(REPO / part, source / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPO / file, source)

    def run(*command: str) -> None:
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=folder, check=False)
        assert done.returncode == 0, done.stderr + done.stdout

    run("build", "--no-isolation", "--outdir", str(folder / "dist"), str(source))
    (wheel,) = (folder / "dist").glob("*.whl")
    run("pip", "install", "-q", "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheel))
    return folder / "site"


@pytest.mark.slow
def test_every_module_imports_from_the_wheel(installed_wheel: Path) -> None:
    code = (
        "import importlib, sys; sys.path.insert(0, sys.argv[1]); import judgetree\n"
        "assert judgetree.__file__.startswith(sys.argv[1]), judgetree.__file__\n"
        "for name in sys.argv[2:]: importlib.import_module(name)\n"
        "from judgetree.graphs.tree.nodes import QueryNode\n"
        "assert '<script' in judgetree.SearchTree(root=QueryNode(thread_id='t', query='q')).to_html(picture=False)\n"
    )
    # -S -E would hide the dependencies; the folder comes first on the path, before the editable install's hook.
    command = [sys.executable, "-c", code, str(installed_wheel), *MODULES]
    done = subprocess.run(command, capture_output=True, text=True, cwd=installed_wheel, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_wheel_holds_nothing_generic_at_the_top_level(installed_wheel: Path) -> None:
    assert {path.name for path in installed_wheel.iterdir() if not path.name.endswith(".dist-info")} <= {
        "judgetree",
        "bin",
        "__pycache__",
    }
    for typed in ("py.typed", "__init__.pyi", "evaluation/__init__.pyi"):
        assert (installed_wheel / "judgetree" / typed).exists()


@pytest.mark.slow
def test_the_wheel_holds_the_texts_of_new_packages(installed_wheel: Path) -> None:
    texts = {path.name for path in (REPO / "app/commands/new").glob("*.txt")}
    assert texts == {path.name for path in (installed_wheel / "judgetree/app/commands/new").glob("*.txt")}


@pytest.mark.slow
def test_the_wheel_holds_the_web_page(installed_wheel: Path) -> None:
    parts = {"css", "js", "vendor", "words"}
    ours = {path.relative_to(REPO) for part in parts for path in (REPO / "app/server/page" / part).rglob("*.*")}
    kept = {path.relative_to(installed_wheel / "judgetree") for path in (installed_wheel / "judgetree/app").rglob("*")}
    assert ours | {Path("app/server/page/index.html"), Path("app/server/page/THIRD_PARTY.md")} <= kept


@pytest.mark.parametrize("package", [judgetree, evaluation])
def test_every_public_name_is_there(package: ModuleType) -> None:
    assert sorted(package.__all__) == dir(package)
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        package.nonsense  # noqa: B018


MODEL_CLIENTS = {"openai", "langchain_openai", "aiohttp", "tiktoken"}
DATABASE = {"pymilvus", "langchain_milvus", "pandas"}
EVERYTHING = {"langgraph", "langchain_core", "numpy"} | MODEL_CLIENTS | DATABASE


@pytest.mark.parametrize(
    ("name", "unneeded"),
    [
        pytest.param("judgetree", EVERYTHING | {"pydantic"}, id="package"),
        pytest.param("judgetree.evaluation", EVERYTHING | {"pydantic"}, id="evaluation"),
        pytest.param("judgetree.app.scripted.server", EVERYTHING | {"httpx"}, id="scripted model"),
        pytest.param("judgetree.app.terminal.saved", MODEL_CLIENTS | DATABASE | {"networkx"}, id="saved trees"),
        pytest.param("judgetree.graphs.session", MODEL_CLIENTS | {"networkx"}, id="session without a model"),
        pytest.param("judgetree.modules.index.factory", MODEL_CLIENTS | {"langgraph", "networkx"}, id="index"),
    ],
)
def test_importing_loads_nothing_that_is_heavy_and_unneeded(name: str, unneeded: set[str]) -> None:
    code = f"import {name}, sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert unneeded & set(loaded) == set()


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    done = doctest.testmod(module)
    assert done.failed == 0
    assert done.attempted > 0


PIN = re.compile(r"^([a-z0-9][\w.-]*)==(\S+)", re.MULTILINE)
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}


def pins(name: str) -> set[tuple[str, str]]:
    return set(PIN.findall((REPO / name).read_text(encoding="utf-8")))


def test_constraints_are_the_versions_of_the_lock_files() -> None:
    assert pins("constraints.txt") == pins("requirements.lock") | pins("requirements-local.lock")


@pytest.mark.parametrize("extra", EXTRAS)
def test_constraints_have_a_version_for_each_requirement(extra: str) -> None:
    known: dict[str, list[str]] = {}
    for name, version in pins("constraints.txt"):
        known.setdefault(name, []).append(version)
    for requirement in map(Requirement, EXTRAS[extra]):
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        versions = known.get(name, [])
        assert versions, f"{name} has no constraint: make lock"
        assert all(requirement.specifier.contains(version) for version in versions), (str(requirement), versions)


@pytest.mark.parametrize("name", ["constraints.txt", "requirements.lock", "requirements-local.lock"])
def test_lock_files_name_no_index(name: str) -> None:
    text = (REPO / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*--(?!hash=sha256:)", text, re.MULTILINE)


def test_pip_needs_no_search_for_what_ragas_leaves_open() -> None:
    """Without these bounds pip tries some hundred versions of instructor, and then of openai."""
    bounded = {Requirement(line).name: Requirement(line).specifier for line in EXTRAS["eval"]}
    locked = dict(pins("requirements.lock"))
    for name in (
        "instructor",
        "jiter",
        "langchain",
        "langchain-classic",
        "langchain-core",
        "langchain-openai",
        "openai",
    ):
        assert any(bound.operator in ("<", "<=", "==") for bound in bounded[name]), name
        assert bounded[name].contains(locked[name])
    assert "aiohttp" in next(Requirement(line) for line in EXTRAS["eval"] if line.startswith("openai")).extras, (
        "openai[aiohttp] is a candidate of its own to pip, which bounds of openai alone do not reach"
    )
