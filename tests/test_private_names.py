"""Private names of other packages: none but those that have no public form, each in the files named here."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import judgetree.modules.llm
from judgetree.modules.llm.wire import chat_reply

REPO = Path(__file__).parents[1]
ROOMS = ("modules", "graphs", "eval", "app")
EXTENSION_POINTS = frozenset({"_llm_type", "_generate", "_agenerate", "_stream", "_astream"})
"""What LangChain documents for a chat model of one's own."""
_LANGGRAPH = "langgraph._internal._constants"
_POSTGRES = "langgraph.checkpoint.postgres"
WITHOUT_A_PUBLIC_FORM = {
    "modules/cluster.py": ("ray._private.worker", "ray._private.services", "ray._raylet.Config.initialize"),
    "modules/embedding/hosted.py": ("openai._base_client.get_platform", "openai._base_client.AsyncAPIClient._platform"),
    "modules/index/chunking.py": (
        "langchain_text_splitters.TextSplitter._chunk_size",
        "langchain_text_splitters.TextSplitter._chunk_overlap",
    ),
    "modules/prebuilt/sparse.py": ("bm25s.tokenization._infer_stopwords",),
    "modules/retriever/searched.py": tuple(
        f"langchain_milvus.Milvus.{name}" for name in ("_primary_field", "_text_field", "_connection_args")
    ),
    "graphs/rag/nested.py": tuple(
        f"{_LANGGRAPH}.CONFIG_KEY_{name}"
        for name in ("CHECKPOINT_NS", "RESUME_MAP", "RUNTIME", "SCRATCHPAD", "STREAM", "TASK_ID")
    ),
    "graphs/savers/postgres_saver.py": (
        f"{_POSTGRES}.base._keep_latest",
        *(
            f"{_POSTGRES}.aio.AsyncPostgresSaver.{name}"
            for name in ("_dump_blobs", "_dump_writes", "_search_where", "_load_checkpoint_tuple")
        ),
    ),
}
"""Files, one a library, with the places of the names that they use."""


def trees() -> dict[str, ast.Module]:
    files = sorted(path for room in ROOMS for path in (REPO / room).rglob("*.py"))
    return {path.relative_to(REPO).as_posix(): ast.parse(path.read_text("utf-8")) for path in files}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def private_names(tree: ast.Module) -> Iterator[str]:
    """Names that a file takes from a module or object; a module's own are among them."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.Attribute):
            names = [node.attr]
        yield from filter(is_private, names)


def test_no_file_takes_another_packages_private_names() -> None:
    read = trees()
    own = {name for tree in read.values() for name in defined(tree)}
    for file, tree in read.items():
        places = WITHOUT_A_PUBLIC_FORM.get(file, ())
        assert set(private_names(tree)) - own <= {part for place in places for part in place.split(".")}, file


@pytest.mark.parametrize(
    ("file", "place"), [(file, place) for file, places in WITHOUT_A_PUBLIC_FORM.items() for place in places]
)
def test_a_private_name_is_where_its_file_looks_for_it(file: str, place: str) -> None:
    *holders, name = place.split(".")
    if holders[0] == "ray":
        pytest.importorskip("ray", exc_type=ImportError)
    try:
        holder: object = pkgutil.resolve_name(".".join(holders))
    except (ImportError, AttributeError) as error:
        pytest.fail(f"the library has moved {place}, which {file} uses: {error}")
    is_there = hasattr(holder, name) or f"self.{name}" in "".join(map(inspect.getsource, _bases(holder)))
    assert is_there, f"the library has moved {place}, which {file} uses"


def _bases(holder: object) -> list[type]:
    return [each for each in holder.__mro__ if each is not object] if isinstance(holder, type) else []


def model_classes() -> list[type]:
    package = judgetree.modules.llm
    names = [each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    modules = [importlib.import_module(name) for name in names]
    found = {each for module in modules for _, each in inspect.getmembers(module, inspect.isclass)}
    return sorted((each for each in found if each.__module__.startswith("judgetree.")), key=lambda each: each.__name__)


@pytest.mark.parametrize("made", model_classes(), ids=lambda made: str(made.__name__))
def test_no_class_calls_or_replaces_a_private_method_of_a_foreign_base(made: type) -> None:
    foreign = [each for each in made.__mro__ if not each.__module__.startswith("judgetree.") and each is not object]
    theirs = {name for each in foreign for name in vars(each) if is_private(name)} - {"_abc_impl", "_is_protocol"}
    tree = ast.parse(inspect.getsource(made).lstrip()) if foreign and inspect.getsource(made) else ast.parse("")
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert (used | vars(made).keys()) & theirs <= EXTENSION_POINTS


def test_the_checks_see_a_private_name() -> None:
    tree = ast.parse("import a._b\nfrom c._d import e\nself._get_request_payload()\n")
    assert set(private_names(tree)) == {"_b", "_d", "_get_request_payload"}
    assert chat_reply.ChoiceOfStream in model_classes()
