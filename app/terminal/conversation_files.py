"""Conversations on their way out: to files, or to standard output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ...graphs.conversation.tree import ConversationTree
from ...modules.errors import SettingsError
from .tree_files import TreeFiles, TreeFormat

CONVERSATION_DRAWERS: Mapping[TreeFormat, Callable[[ConversationTree], str]] = {
    "svg": lambda tree: tree.to_svg(),
    "html": lambda tree: tree.to_html(),
    "json": lambda tree: tree.to_json(indent=2),
    "dot": lambda tree: tree.to_dot(),
}


def files_by_suffix(name: str) -> TreeFiles:
    """One file, in the format that its name ends in; it is checked that it can be written.

    Raises:
        SettingsError: The name has another ending, or the file cannot be written.
        DependencyError: A picture is wanted and there is no program to draw it.
    """
    form = Path(name).suffix.removeprefix(".").lower()
    if form not in CONVERSATION_DRAWERS:
        allowed = ", ".join(f".{known}" for known in CONVERSATION_DRAWERS)
        raise SettingsError(f"Into which file? Give a name that ends in {allowed}; got {name!r}.")
    files = TreeFiles.named(**{form: name})
    files.check(stdout_is_free=False)
    return files


def write_conversation(tree: ConversationTree, files: TreeFiles) -> None:
    """Write a conversation in every format that is wanted.

    Raises:
        SettingsError, DependencyError: See ``TreeFiles.write``.
    """
    files.write_drawn(lambda form: CONVERSATION_DRAWERS[form](tree))
