"""Output of search trees and conversations to files or standard output."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from ...modules.errors import DependencyError, SettingsError
from ...modules.storage.atomic import write_atomic
from .terminal import say, write_result

if TYPE_CHECKING:
    from ...graphs.conversation.tree import ConversationTree
    from ...graphs.forks.explanation import Explanation
    from ...graphs.neighbourhood.shown import ShownGraph
    from ...graphs.rag.search_tree import SearchTree

TreeFormat = Literal["svg", "html", "json", "dot", "graphml"]
STDOUT = "-"
CONVERSATION_FORMATS: tuple[TreeFormat, ...] = ("svg", "html", "json", "dot")


@dataclass(frozen=True, kw_only=True)
class TreeFiles:
    """Targets of a tree by format; ``-`` is standard output."""

    targets: Mapping[TreeFormat, str] = field(default_factory=dict)
    look: Mapping[str, object] = field(default_factory=dict)
    """Options of ``to_svg`` and ``to_dot``."""

    @classmethod
    def named(cls, *, look: Mapping[str, object] | None = None, **targets: str | None) -> TreeFiles:
        """Make the targets of the formats that are not None."""
        named = {form: file for form in get_args(TreeFormat) if (file := targets.get(form)) is not None}
        return cls(targets=named, look=look or {})

    def check(self, *, stdout_is_free: bool) -> None:
        """Check all targets before the first model call. Nothing is written.

        Raises:
            SettingsError: A file cannot be written, or standard output would receive two results.
            DependencyError: A picture needs a renderer, and none is installed.
        """
        on_stdout = [form for form, target in self.targets.items() if target == STDOUT]
        if len(on_stdout) > int(stdout_is_free):
            raise SettingsError(
                f"--{on_stdout[-1]} - would mix two results on standard output. Name a file: --{on_stdout[-1]} FILE."
            )
        for form, target in self.targets.items():
            if target != STDOUT:
                check_writable(Path(target), option=f"--{form}")
        if "svg" in self.targets:
            _check_renderer()

    def write(self, tree: SearchTree | ConversationTree | Explanation | ShownGraph) -> None:
        """Write the tree in every format, and name the files.

        Raises:
            WritingError: A file could not be written; it is unchanged.
            DependencyError: The picture could not be drawn.
        """
        for form, target in self.targets.items():
            options = {"json": {"indent": 2}, "svg": self.look, "dot": self.look}.get(form, {})
            text = getattr(tree, f"to_{form}")(**options)
            if target == STDOUT:
                write_result(text)
                continue
            write_atomic(Path(target), text)
            say(f"wrote {target}", style="dim")


def check_writable(file: Path, *, option: str) -> None:
    """Check that a file, existing or not, can be written.

    Raises:
        SettingsError: It is a folder, its folder is missing, or permission is.
    """
    if file.is_dir():
        raise SettingsError(f"{option}: {file} is a folder. Name a file in it.")
    if not file.parent.is_dir():
        raise SettingsError(f"{option}: there is no folder {file.parent}. Make it first, or name another file.")
    # A regular file is replaced by a new one, which needs room in its folder; a pipe or a terminal is written to.
    places = {file, file.parent} if file.is_file() else {file if file.exists() else file.parent}
    if not all(os.access(place, os.W_OK) for place in places):
        raise SettingsError(
            f"{option}: {file} cannot be written: no permission, for it or in its folder. Name another file."
        )


def _check_renderer() -> None:
    from ...graphs.drawing.svg import find_renderer

    if find_renderer() is None:
        raise DependencyError(
            '--svg needs the Graphviz command "dot" or the Python package graphviz-pure: pip install graphviz-pure. '
            "--html works without."
        )


def files_by_suffix(name: str) -> TreeFiles:
    """Return the target of a file in the format of its suffix, and check that it can be written.

    Raises:
        SettingsError: The suffix is unknown, or the file cannot be written.
        DependencyError: A picture needs a renderer, and none is installed.
    """
    form = Path(name).suffix.removeprefix(".").lower()
    if form not in CONVERSATION_FORMATS:
        allowed = ", ".join(f".{known}" for known in CONVERSATION_FORMATS)
        raise SettingsError(f"The file name must end in {allowed}; got {name!r}.")
    files = TreeFiles(targets={form: name})
    files.check(stdout_is_free=False)
    return files
