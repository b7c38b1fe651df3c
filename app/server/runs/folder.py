"""The evaluation runs below a folder, and who may see them."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar, cast

from fastapi import Depends, Request
from fastapi import Path as UrlPath

from ....evaluation.rows.store import RunStore
from ....modules.errors import LoadingError, UserError, needs_extra
from ....modules.settings import Settings, without_secrets
from ..serving.caller import CallerBy
from ..serving.errors import ApiError, as_api_error

P = ParamSpec("P")
T = TypeVar("T")

MANIFEST = "manifest.json"
_UNREAD = ("checkpoints.", "report.", "results.", "run.lock", "setup.lock", "append.lock")
"""Beginnings of the names of files that no figure comes from."""

State = tuple[tuple[str, int, int], ...]
"""Names, times and sizes of a run's files; it changes when the run has a new answer or score."""


@dataclass(frozen=True, kw_only=True)
class FoundRun:
    """The directory of a run below the folder."""

    name: str
    path: Path
    """Absolute, with all links followed."""
    started: str
    """Time at which it was started, in ISO 8601; ``""`` if its manifest cannot be read."""

    def state(self) -> State:
        """Return what changes with every answer and score of the run."""
        files = [each for each in self.path.iterdir() if not each.name.startswith(_UNREAD)]
        return tuple(sorted(_stamp(each) for each in files if each.is_file()))


class RunsFolder:
    """The runs of a folder. Reading and scoring happen one at a time in threads, since each takes seconds.

    A run is a directory right below the folder, with a manifest. Links that lead out of the folder, of the directory or
    of any of its files, make a run invisible.
    """

    def __init__(self, root: Path | None, settings: Settings) -> None:
        self.settings = settings
        self._root = root.expanduser().resolve() if root is not None else None
        self._working = asyncio.Lock()
        self._made: dict[object, OrderedDict[str, tuple[State, object]]] = {}

    def all(self) -> list[FoundRun]:
        """Return the runs, the most recently started first."""
        found = [run for name in self._names() if (run := self._run(name)) is not None]
        return sorted(found, key=lambda run: run.started, reverse=True)

    def find(self, name: str) -> FoundRun:
        """Return the run of a name.

        Raises:
            ApiError: HTTP 404: there is none.
        """
        run = self._run(name) if name in self._names() else None
        if run is None:
            raise ApiError.not_found("run", name)
        return run

    async def made_of(self, run: FoundRun, make: Callable[[FoundRun, Settings], T], *, keep: int) -> T:
        """Return what a function makes of a run, made again once the run has changed.

        Args:
            run: The run.
            make: The function; it runs as in ``work``.
            keep: Number of runs for which the result is kept.
        """
        state, known = await asyncio.to_thread(run.state), self._made.setdefault(make, OrderedDict())
        if run.name not in known or known[run.name][0] != state:
            known[run.name] = state, await self.work(make, run, self.settings)
        known.move_to_end(run.name)
        made = cast(T, known[run.name][1])
        while len(known) > keep:
            known.popitem(last=False)
        return made

    async def work(self, task: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a task of ``evaluation`` in a thread, alone; its errors name runs instead of paths.

        Raises:
            ApiError: A run cannot be read, or the runs cannot be compared; HTTP 501 without the extra ``eval``.
        """

        def guarded() -> T:
            with needs_extra("eval"):
                return task(*args, **kwargs)

        async with self._working:
            try:
                return await asyncio.to_thread(guarded)
            except UserError as error:
                raise self._told(error) from error

    def words(self, text: str) -> str:
        """Return a text with the names of runs in place of their paths, and without secrets."""
        if self._root is not None:
            text = text.replace(f"{self._root}{os.sep}", "").replace(str(self._root), "the folder of runs")
        return without_secrets(text)

    def _told(self, error: UserError) -> ApiError:
        answer = as_api_error(error)
        # A run that cannot be read is no fault of the request.
        status = 409 if isinstance(error, LoadingError) else answer.status
        return ApiError(status, self.words(str(error)), kind=answer.body.type)

    def _names(self) -> list[str]:
        if self._root is None:
            return []
        with suppress(OSError):
            return [each.name for each in self._root.iterdir() if not each.name.startswith(".") and _is_text(each.name)]
        return []

    def _run(self, name: str) -> FoundRun | None:
        assert self._root is not None
        with suppress(OSError, RuntimeError):  # links in a circle, no rights
            path = (self._root / name).resolve()
            linked = (each.resolve() for each in (path, *path.iterdir()) if each == path or each.is_symlink())
            if (path / MANIFEST).is_file() and all(self._root in file.parents for file in linked):
                return FoundRun(name=name, path=path, started=_started(path))
        return None


def _started(path: Path) -> str:
    with suppress(LoadingError):
        return str((RunStore(path).read_manifest() or {}).get("created", ""))
    return ""


def _stamp(file: Path) -> tuple[str, int, int]:
    status = file.stat()
    return file.name, status.st_mtime_ns, status.st_size


def _is_text(name: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in name)  # bytes that are not UTF-8


def runs_of(request: Request, caller: CallerBy) -> RunsFolder:
    """Return the runs that a caller may see: all, or none for the holder of a key for certain collections.

    A run's questions, answers and trees quote the documents that it searched, and its directory does not say under
    which name a server has these. A key for some collections must not read others through it.
    """
    folder = cast(RunsFolder, request.app.state.runs)
    return folder if caller.collections is None else RunsFolder(None, folder.settings)


RunsBy = Annotated[RunsFolder, Depends(runs_of)]
RunName = Annotated[str, UrlPath(min_length=1, max_length=255, description="Name of the run's directory.")]
