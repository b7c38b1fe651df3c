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
WITHOUT_A_PUBLIC_FORM = {
    "modules/cluster.py": {"_private", "_raylet"},
    "modules/embedding/hosted.py": {"_base_client", "_platform"},
    "modules/index/chunking.py": {"_chunk_size", "_chunk_overlap"},
    "modules/prebuilt/sparse.py": {"_infer_stopwords"},
    "modules/retriever/searched.py": {"_primary_field", "_text_field", "_connection_args"},
    "graphs/rag/nested.py": {"_internal", "_constants"},
    "graphs/rag/preparation.py": {"_internal", "_constants"},
    "graphs/savers/postgres_order.py": {"_keep_latest"},
    "graphs/savers/postgres_saver.py": {"_dump_blobs", "_dump_writes", "_search_where", "_load_checkpoint_tuple"},
}


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
        assert set(private_names(tree)) - own <= WITHOUT_A_PUBLIC_FORM.get(file, set()), file


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
