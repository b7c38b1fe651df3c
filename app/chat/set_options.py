"""What the questions of a chat have otherwise than its command: names and values that are typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from ...graphs.threads.overrides import Overrides, described
from ...modules.errors import SettingsError

_SWITCH = {"on": True, "off": False}
_SEARCH_TYPES = {name: name for name in ("hybrid", "dense", "sparse")}
_READ: Mapping[str, tuple[Callable[[str], object], str]] = {
    "llm": (str, "a model, such as openai:gpt-4o"),
    "thinking": (lambda text: _SWITCH[text.casefold()], "on or off"),
    "topk": (int, "a whole number from 1 on"),
    "search_type": (_SEARCH_TYPES.__getitem__, "hybrid, dense or sparse"),
    "rerank": (str, "a model, such as dashscope:gte-rerank"),
    "rerank_input_top_n": (int, "a whole number from 1 on"),
    "score_threshold": (float, "a number"),
    "insert_block": (lambda text: _SWITCH[text.casefold()], "on or off"),
    "insert_block_llm": (str, "a model, such as openai:gpt-4o"),
}


class SetOptions:
    """The options that were set for the following questions."""

    def __init__(self) -> None:
        self.overrides: Overrides = {}
        """Arguments of the following questions."""

    def set(self, name: str, text: str) -> None:
        """Set an option to a typed value; ``""`` takes it back.

        Raises:
            SettingsError: There is no such option, or the value is not allowed.
        """
        if name not in _READ:
            raise SettingsError(f"There is no option {name!r}. Allowed: {', '.join(_READ)}.")
        self.overrides = with_option(self.overrides, name, text)

    def shown(self, name: str) -> str:
        """Return the value of an option, without secrets."""
        return described(self.overrides).get(name, "(as the chat began)")

    def __str__(self) -> str:
        """Return a line for each option, and what is allowed."""
        return "\n".join(f"{name} {self.shown(name)}: {what}" for name, (_, what) in _READ.items())


def with_option(given: Overrides, name: str, text: str) -> Overrides:
    """Return the overrides with an option that is read from text; ``""`` takes it out.

    Raises:
        SettingsError: The value is not allowed.
    """
    read, what = _READ[name]
    others = {key: value for key, value in given.items() if key != name}
    try:
        changed = cast(Overrides, others | ({name: read(text)} if text else {}))
    except (ValueError, KeyError) as error:
        raise SettingsError(f"{name} {text!r} is not allowed. Give {what}.") from error
    described(changed)
    return changed


def read_options(texts: Mapping[str, str]) -> Overrides:
    """Read the overrides that ``described`` describes.

    Raises:
        SettingsError: A value is none that can be typed, such as a model that was given as an object.
    """
    overrides: Overrides = {}
    for name, text in texts.items():
        overrides = with_option(overrides, name, text)
    return overrides
