"""``judgetree trust``: consent to the ``.env`` of a folder that names code, an address or a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...modules.errors import LoadingError, SettingsError
from ..terminal.terminal import busy, say, write_json, write_rows
from .options import Json

if TYPE_CHECKING:
    from ...modules.trust.env_file import EnvFile


def trust(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Folder with a .env.")] = Path(),
    *,
    list_all: Annotated[bool, typer.Option("--list", help="List the folders that are trusted.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust the folder no longer.")] = False,
    as_json: Json = False,
) -> None:
    """Use a folder's .env, as it is now, though it names code, an address or a file; a change of it asks anew."""
    with busy("starting"):
        from ...modules.trust.consent import consents
        from ...modules.trust.consent import revoke as take_back

    if list_all and revoke:
        raise SettingsError("Give --list or --revoke, not both.")
    if list_all:
        listed = consents()
        if as_json:
            write_json([asdict(each) for each in listed])
        elif listed:
            write_rows(((each.folder, "bold"), (f"sha256 {each.sha256[:12]}", "dim")) for each in listed)
        else:
            say("No folder is trusted yet.")
    elif revoke:
        if not take_back(folder):
            raise SettingsError(f"The folder {folder.resolve()} is not trusted. `judgetree trust --list` lists those.")
        say(f"No longer trusted: {folder.resolve()}")
    else:
        _trust(folder, as_json=as_json)


def _trust(folder: Path, *, as_json: bool) -> None:
    from ...modules.settings import Settings, without_secrets
    from ...modules.trust.consent import Consent
    from ...modules.trust.consent import trust as keep
    from ...modules.trust.usable import settings_in

    file = _env_file(folder)
    try:
        found = list(settings_in(file, Settings.model_fields, Settings.model_config["env_prefix"]))
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"The settings file {file.path} is not UTF-8 ({error.reason}). Save it as UTF-8."
        ) from error
    keep(file)
    if as_json:
        write_json(asdict(Consent(folder=str(file.folder), sha256=file.digest)))
        return
    say(f"Trusted as it is now: {file.path}")
    named = [each for each in found if each.needs_consent]
    for each in named:
        say(f"  {each.variable}={without_secrets(each.value)}")
    if not named:
        say("It names no code, address or file, so that its owner may use it without this.")


def _env_file(folder: Path) -> EnvFile:
    from ...modules.trust.env_file import ENV_NAME, read_env_file

    if folder.name == ENV_NAME and folder.is_file():
        folder = folder.parent
    try:
        file = read_env_file(folder)
    except OSError as error:
        raise LoadingError(f"{folder / ENV_NAME} cannot be read: {error.strerror or error}.") from error
    if file is None:
        raise LoadingError(f"There is no {ENV_NAME} in {folder.resolve()}. Name the folder that has it.")
    return file
