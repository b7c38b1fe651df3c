"""``judgetree prompts``: shows judgetree's prompts, copies them to a file to edit, and compares them with your own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...modules.errors import SettingsError
from ..terminal.exit_status import FAILED
from ..terminal.terminal import busy, say, write_json, write_result, write_rows
from .options import DryRun, Json, Prompts

if TYPE_CHECKING:
    from ...modules.calls.prompts import Prompt
    from ...modules.calls.prompts import Prompts as OwnPrompts

prompts_app = typer.Typer(no_args_is_help=True)

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Names of prompts; default: all.")]


@prompts_app.command("show")
def show(names: Names = None, *, prompts: Prompts = None, as_json: Json = False) -> None:
    """List all prompts, or show the named ones in full; your own, of --prompts or JUDGETREE_PROMPTS, are in force.

    Examples:
        judgetree prompts show reader
    """
    with busy():
        from ...modules.prompts.reading import find_prompts
        from ...modules.prompts.writing import to_yaml

    own = _own(prompts)
    shown = [own.get(prompt.name, prompt) for prompt in find_prompts(names or ())]
    if as_json:
        write_json([_document(prompt, own) for prompt in shown])
    elif names:
        write_result(to_yaml(shown).rstrip())
    else:
        _write_list(own)


@prompts_app.command("copy")
def copy(
    names: Names = None,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write judgetree's prompts to a YAML file to edit; what you delete from it stays judgetree's.

    Examples:
        judgetree prompts copy reader judge my.yaml
    """
    with busy():
        from ...modules.prompts.reading import find_prompts
        from ...modules.prompts.writing import to_yaml
        from ...modules.storage.atomic import write_atomic
        from ..terminal.files import check_writable

    if file.suffix not in (".yaml", ".yml"):
        raise SettingsError(f"The last argument is the file to write, a name in .yaml; got {str(file)!r}.")
    copied = find_prompts(names or ())
    check_writable(file, option="FILE")
    if file.exists() and not force:
        raise SettingsError(f"{file} exists. Name another file, or give --force to overwrite it.")
    if file.exists():
        say(f"{'would overwrite' if dry_run else 'overwriting'} {file}, {file.stat().st_size:,} bytes", style="yellow")
    if dry_run:
        say(f"would write {len(copied)} prompts to {file}")
        return
    write_atomic(file, to_yaml(copied))
    if as_json:
        write_json({"file": str(file), "prompts": [prompt.name for prompt in copied]})
    else:
        what = "prompt" if len(copied) == 1 else "prompts"
        say(f"Wrote {len(copied)} {what} to {file}. Edit it, then: judgetree ask --prompts {file}")


@prompts_app.command("diff")
def diff(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Your own prompts.")],
    other: Annotated[
        Path | None, typer.Argument(metavar="[OTHER]", help="Another file; without, judgetree's prompts.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Show what FILE changes in judgetree's prompts, or what OTHER changes in FILE; exit status 1 if anything.

    Examples:
        judgetree prompts diff my.yaml
    """
    with busy():
        from ...modules.prompts.reading import load_prompts
        from ...modules.prompts.writing import changed_names, diff_of

    one, two = (load_prompts(None), load_prompts(file)) if other is None else (load_prompts(file), load_prompts(other))
    names = ("judgetree", str(file)) if other is None else (str(file), str(other))
    changed, text = changed_names(one, two), diff_of(one, two, names=names)
    if as_json:
        write_json({"changed": changed, "diff": text})
    elif text:
        write_result(text)
    if changed:
        raise typer.Exit(FAILED)


def _own(file: Path | None) -> OwnPrompts:
    from ...modules.prompts.reading import load_prompts
    from ...modules.settings import load_settings

    return load_prompts(file or load_settings().prompts)


def _document(prompt: Prompt, own: Iterable[str]) -> dict[str, object]:
    return {
        "name": prompt.name,
        "about": prompt.about,
        "placeholders": list(prompt.placeholders),
        "own": prompt.name in own,
        **prompt.to_document(),
    }


def _write_list(own: Iterable[str]) -> None:
    from ...modules.prompts.table import USED_BY

    write_rows(
        ((prompt.name, "bold"), (user, "dim"), ("own" if prompt.name in own else "", "bold"), (prompt.about, "dim"))
        for user, prompts in USED_BY.items()
        for prompt in prompts
    )
