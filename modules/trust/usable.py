"""What may be used of the current folder's ``.env``, and why the rest is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic.fields import FieldInfo

from .consent import is_trusted
from .env_file import ENV_NAME, EnvFile, read_env_file
from .naming import needs_consent
from .owners import SAFE_FOLDERS, is_named_safe, remedy_for, why_foreign


class NotTrusted(Exception):
    """A file or folder may not be used; the message says which, why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class SettingLine:
    """A setting in a ``.env``."""

    line: int
    variable: str
    """Name of its environment variable."""
    name: str
    value: str
    """As written, before ``${NAME}`` is replaced."""
    needs_consent: bool


def env_file_here() -> EnvFile | None:
    """Return the ``.env`` of the current folder; None without one.

    Raises:
        NotTrusted: It cannot be read.
        UnicodeDecodeError: It is not UTF-8.
    """
    path = Path.cwd() / ENV_NAME
    try:
        if path.is_fifo() and (why := foreign_env_file(path)):
            raise OSError(why)  # which another user may leave without a writer
        return read_env_file(path.parent)
    except OSError as error:
        why = why_foreign(path) or error.strerror or str(error)
        raise NotTrusted(f"The settings file {path} cannot be read: {why}. Make it readable, or remove it.") from error


def settings_in(
    file: EnvFile, fields: Mapping[str, FieldInfo], prefix: str, *, but: Collection[str] = ()
) -> Iterator[SettingLine]:
    """Yield the settings in a ``.env`` by lines, but those of the names in ``but``.

    Args:
        file: The file.
        fields: The fields of the settings by name.
        prefix: What their variables begin with.
        but: Names of fields that get their value elsewhere.
    """
    for line, written, value in file.lines():
        variable = written.lower()  # as it is looked up
        name = variable.removeprefix(prefix.lower())
        if name != variable and name in fields and name not in but:
            needs = needs_consent(fields[name], value)
            yield SettingLine(line=line, variable=variable.upper(), name=name, value=value, needs_consent=needs)


def usable_variables(
    file: EnvFile, fields: Mapping[str, FieldInfo], prefix: str, *, but: Collection[str] = ()
) -> Mapping[str, str | None]:
    """Return the variables of a ``.env`` by their names in lower case; none if its only settings are those in ``but``.

    The other arguments are those of ``settings_in``.

    Raises:
        NotTrusted: The file belongs to another user, or has settings that need consent.
        UnicodeDecodeError: It is not UTF-8.
    """
    found = list(settings_in(file, fields, prefix, but=but))
    if not found:
        return {}
    if refusal := why_refused(file, found):
        raise NotTrusted(refusal)
    return {variable.lower(): value for variable, value in file.values.items()}


def why_refused(file: EnvFile, found: Collection[SettingLine]) -> str:
    """Return why a ``.env`` with these settings is not used, and what to do; ``""`` if it may be used."""
    if is_named_safe(file.path) or is_trusted(file):
        return ""
    use_it = f"Read it; to use it as it is now: judgetree trust {file.folder}"
    if why := foreign_env_file(file.path):
        return (
            f"The settings file {file.path} is not used: {why}. {use_it}. {remedy_for(file.folder)}. Or set what "
            "you need in the environment."
        )
    if naming := [f"{each.variable} (line {each.line})" for each in found if each.needs_consent]:
        return (
            f"The settings file {file.path} names code, an address or a file, and may have come with its folder: "
            f"{', '.join(naming)}. {use_it} (without a terminal: {SAFE_FOLDERS}={file.folder}). Or set these in the "
            "environment."
        )
    return ""


def foreign_env_file(path: Path) -> str:
    """Return why a ``.env``, or the folder it is in, is not this user's; ``""`` if both are."""
    return why_foreign(path) or why_foreign(path.parent)
