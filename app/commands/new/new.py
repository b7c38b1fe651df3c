"""``judgetree new``: writes a package with a part of one's own and the test that checks it."""

from __future__ import annotations

import importlib.util
import keyword
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, get_args

import typer

from ....modules.errors import SettingsError
from ...terminal.terminal import say, write_result
from .skeletons import SKELETONS, SkeletonKind, files_of, folder_of, part_name


def new(
    kind: Annotated[SkeletonKind, typer.Argument(metavar="KIND", help="Kind of part.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of its module, such as long_chunks.")],
) -> None:
    """Write a package with a judge, retriever, metric, policy, system or data set of your own, and its test.

    The package is a folder judgetree-NAME with three files: the part, to change; a test of what judgetree relies on,
    which passes; and pyproject.toml, by which judgetree knows the part by name once it is installed.

    Examples:
        judgetree new judge long_chunks
        judgetree new metric share_of_gold
    """
    from ....modules.storage.atomic import write_atomic

    _check_name(kind, name)
    folder = Path(folder_of(name))
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise SettingsError(f"{folder} exists. Give another NAME, or move it away.") from error
    files = files_of(kind, name)
    for file, text in files.items():
        write_atomic(folder / file, text)
    write_result("\n".join(str(folder / file) for file in files))
    use = SKELETONS[kind].use
    say(f"change it:   {folder / next(iter(files))}")
    say(f"check it:    python -m pytest {folder}")
    say(f"use it:      cd {folder} && {use.format(part=f'{name}:{part_name(kind, name)}')}")
    say(f"install it:  pip install -e {folder} && {use.format(part=name)}")


def _check_name(kind: SkeletonKind, name: str) -> None:
    if not re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise SettingsError(
            f"NAME {name!r:.80} is no name of a module. Give small letters, digits and single _, such as long_chunks."
        )
    if importlib.util.find_spec(name) is not None:
        raise SettingsError(f"NAME {name!r} is that of a module which Python has already. Give another one.")
    if name in _built_in(kind):
        raise SettingsError(f"NAME {name!r} is that of a {kind} of judgetree, which would be taken. Give another one.")


def _built_in(kind: SkeletonKind) -> Collection[str]:
    """Return the names of judgetree's own parts of a kind."""
    from ....evaluation.datasets.registry import DATASETS
    from ....evaluation.scoring.own_metric import BUILT_IN
    from ....graphs.search.policies.registry import POLICIES
    from ....graphs.systems.registry import SYSTEMS
    from ....modules.judge.factory import JudgeKind

    names: Mapping[SkeletonKind, Collection[str]] = {
        "judge": get_args(JudgeKind),
        "policy": POLICIES,
        "system": SYSTEMS,
        "metric": BUILT_IN,
        "dataset": DATASETS,
    }
    return names.get(kind, ())
