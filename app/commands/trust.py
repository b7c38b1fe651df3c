"""``judgetree trust``: consent to the ``.env`` of a folder that names code, an address or a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...modules.errors import LoadingError, SettingsError
from ..terminal.terminal import say, write_json, write_rows
from .options import Json

if TYPE_CHECKING:
    from ...modules.trust.env_file import EnvFile


def trust(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Folder with a .env or a .judgetree.")] = Path(),
    *,
    list_all: Annotated[bool, typer.Option("--list", help="List what is trusted.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust the folder no longer.")] = False,
    as_json: Json = False,
) -> None:
    """Trust a folder: its .env as it is now, with the code, addresses and files that it names, and its .judgetree.

    Examples:
        judgetree trust
        judgetree trust FOLDER --revoke
    """
    if list_all and revoke:
        raise SettingsError("Give --list or --revoke, not both.")
    if list_all:
        _list(as_json=as_json)
    elif revoke:
        _revoke(folder.resolve())
    else:
        _trust(folder.resolve(), as_json=as_json)


def _list(*, as_json: bool) -> None:
    from ...modules.trust.consent import consents

    listed = consents()
    if as_json:
        write_json([asdict(each) for each in listed])
    elif listed:
        write_rows(((each.path, "bold"), (each.content[:24], "dim")) for each in listed)
    else:
        say("Nothing is trusted yet.")


def _revoke(folder: Path) -> None:
    from ...modules.trust.consent import revoke
    from ...modules.trust.env_file import ENV_NAME
    from ...modules.trust.private import HOME_NAME

    revoked = [path for path in (folder / ENV_NAME, folder / HOME_NAME) if revoke(path)]
    if not revoked:
        raise SettingsError(f"The folder {folder} is not trusted. `judgetree trust --list` lists what is.")
    for path in revoked:
        say(f"No longer trusted: {path}")


def _trust(folder: Path, *, as_json: bool) -> None:
    from ...modules.trust.consent import trust
    from ...modules.trust.env_file import ENV_NAME
    from ...modules.trust.owners import why_foreign
    from ...modules.trust.private import HOME_NAME

    file, home = _env_file(folder), folder / HOME_NAME
    named = [] if file is None else _named_in(file)
    is_own_home = home.is_dir() and not why_foreign(home)  # another user may change theirs at any time
    kept = [trust(what) for what in (file, home if is_own_home else None) if what is not None]
    if not kept:
        raise LoadingError(f"There is no {ENV_NAME}, and no {HOME_NAME} of yours, in {folder}. Name another.")
    if as_json:
        write_json([asdict(each) for each in kept])
        return
    for each in kept:
        say(f"Trusted as it is now: {each.path}")
    for line in named:
        say(line)


def _named_in(file: EnvFile) -> list[str]:
    """Return a line for each setting that needs the consent, without secrets."""
    from ...modules.settings import Settings, without_secrets
    from ...modules.trust.usable import settings_in

    prefix = str(Settings.model_config["env_prefix"])
    try:
        found = list(settings_in(file, Settings.model_fields, prefix))
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file.path} is not UTF-8 ({error.reason}). Save it as UTF-8.") from error
    return [f"  {each.variable}={without_secrets(each.value)}" for each in found if each.needs_consent]


def _env_file(folder: Path) -> EnvFile | None:
    from ...modules.trust.env_file import ENV_NAME, read_env_file

    try:
        return read_env_file(folder)
    except OSError as error:
        raise LoadingError(f"{folder / ENV_NAME} cannot be read: {error.strerror or error}.") from error
