"""Packages that take settings or data from folders of others as they are imported, and are kept from it.

pymilvus loads a ``.env`` into the environment, with every variable: the one nearest to its own files, or in a notebook
that of the current folder or one above. jieba reads its dictionary from ``jieba.cache`` in the common temporary folder,
where another user may have put one.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType

from .closed import make_closed, user_folder
from .owners import why_foreign

_NO_ENV_FILE = "PYTHON_DOTENV_DISABLED"


def guard_imports() -> None:
    """Let the packages be imported, from now on, as this module says; once a process is enough."""
    if not any(isinstance(finder, _Guard) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Guard())


@contextmanager
def _without_env_file() -> Iterator[None]:
    before = os.environ.get(_NO_ENV_FILE)
    os.environ[_NO_ENV_FILE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NO_ENV_FILE]
        else:
            os.environ[_NO_ENV_FILE] = before


def _keep_cache_private(jieba: ModuleType) -> None:
    """Let jieba keep its dictionary in a folder of this user; without one, in a common file that is not foreign."""
    try:
        folder = user_folder("XDG_CACHE_HOME", "~/.cache")
        make_closed(folder)
        jieba.dt.tmp_dir = str(folder)
    except OSError:
        if why_foreign(Path(tempfile.gettempdir(), "jieba.cache")):
            jieba.dt.tmp_dir = os.devnull  # no folder: nothing is found there, and nothing kept


class _Loader(importlib.abc.Loader):
    def __init__(self, inner: importlib.abc.Loader) -> None:
        self._inner = inner

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._inner
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        with _without_env_file() if module.__name__ == "pymilvus.settings" else nullcontext():
            self._inner.exec_module(module)
        if module.__name__ == "jieba":
            _keep_cache_private(module)


class _Guard(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in ("pymilvus.settings", "jieba"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec
