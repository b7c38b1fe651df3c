"""``judgetree settings``: every setting, with its value and where it comes from."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Literal

from ..terminal.terminal import busy, write_json, write_rows
from .options import Json

Source = Literal["default", "environment", ".env"]


@dataclass(frozen=True, kw_only=True)
class SettingInForce:
    """One setting."""

    name: str
    """Its environment variable."""
    value: str
    """Without secrets; ``""`` if it is not set."""
    source: Source
    meaning: str
    file: str = ""
    """Path of the ``.env`` that it comes from; ``""`` if it comes from elsewhere."""


def settings(as_json: Json = False) -> None:
    """List all settings: environment variable, value in force, where it comes from, meaning.

    Examples:
        judgetree settings
    """
    listed = read_settings()
    if as_json:
        write_json([asdict(setting) for setting in listed])
        return
    styles = {"default": "dim", "environment": "bold", ".env": "bold"}
    write_rows(
        (
            (each.name, styles[each.source]),
            (each.value or "-", ""),
            (each.file or each.source, "dim"),
            (each.meaning, "dim"),
        )
        for each in listed
    )


def read_settings() -> list[SettingInForce]:
    """Read the settings in force, in the order of their definition.

    Raises:
        SettingsError: A value is not allowed.
    """
    with busy():
        from ...modules.settings import Settings, load_settings
        from ...modules.trust.usable import env_file_here

    in_force = load_settings().model_dump(mode="json")
    prefix = Settings.model_config["env_prefix"]
    in_environment = {name.upper() for name in os.environ}
    file = env_file_here()
    in_file = {name.upper() for name in file.values} if file is not None else set()

    def source_of(variable: str) -> Source:
        if variable in in_environment:
            return "environment"
        return ".env" if variable in in_file else "default"

    return [
        SettingInForce(
            name=(variable := f"{prefix}{name}".upper()),
            value="" if in_force[name] is None else str(in_force[name]),
            source=(source := source_of(variable)),
            meaning=field.description or "",
            file=str(file.path) if file is not None and source == ".env" else "",
        )
        for name, field in Settings.model_fields.items()
    ]
