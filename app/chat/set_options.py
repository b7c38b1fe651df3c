"""What the questions of a chat have otherwise than its command: names and values that are typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from ...graphs.config.given_keys import GivenKeys
from ...graphs.config.rag_config import RagConfig
from ...modules.config.config import typed_as
from ...modules.errors import SettingsError, did_you_mean
from ...modules.reading.yaml_files import parse_value

_SWITCH = {"on": True, "off": False}
_NAMES = RagConfig.keys_with(per_question=True)


class SetOptions:
    """The options that were set for the following questions."""

    def __init__(self) -> None:
        self.keys: dict[str, object] = {}
        """Keys of the following questions."""

    def set(self, name: str, text: str) -> None:
        """Set an option to a typed value; ``""`` takes it back.

        Raises:
            SettingsError: There is no such option, or the value is not allowed.
        """
        if name not in _NAMES:
            near = did_you_mean(name, _NAMES)
            raise SettingsError(f"There is no option {name!r}.{near} Allowed: {', '.join(_NAMES)}.")
        self.keys = with_option(self.keys, name, text)

    def shown(self, name: str) -> str:
        """Return the value of an option, without secrets."""
        return GivenKeys.of_question(self.keys).described().get(name, "(as the chat began)")

    def __str__(self) -> str:
        """Return a line for each option, and what is allowed."""
        return "\n".join(f"{name} {self.shown(name)}: {_allowed(name)}" for name in _NAMES)


def with_option(given: Mapping[str, object], name: str, text: str) -> dict[str, object]:
    """Return the keys with an option that is read from text; ``""`` takes it out.

    Raises:
        SettingsError: The value is not allowed.
    """
    changed = {key: value for key, value in given.items() if key != name}
    if text:
        changed[name] = _value(name, text)
    GivenKeys.of_question(changed)
    return changed


def read_options(texts: Mapping[str, str]) -> dict[str, object]:
    """Read the keys that ``GivenKeys.described`` describes.

    Raises:
        SettingsError: A value is none that can be typed, such as a model that was given as an object.
    """
    keys: dict[str, object] = {}
    for name, text in texts.items():
        keys = with_option(keys, name, text)
    return keys


def _value(name: str, text: str) -> object:
    kind = typed_as(RagConfig.model_fields[name].annotation)
    try:
        if kind is bool:
            return _SWITCH[text.casefold()]
        return parse_value(text) if kind in (int, float) else text
    except (ValueError, KeyError) as error:
        raise SettingsError(f"{name} {text!r} is not allowed. Give {_allowed(name)}.") from error


def _allowed(name: str) -> str:
    kind = typed_as(RagConfig.model_fields[name].annotation)
    if choices := get_args(kind):
        return ", ".join(choices)
    metadata = RagConfig.model_fields[name].metadata
    least = next((f" from {each.ge} on" for each in metadata if getattr(each, "ge", None) is not None), "")
    said = {bool: "on or off", int: f"a whole number{least}", float: "a number"}
    return said.get(kind) or RagConfig.key(name).metavar or "a name"
