"""Options of commands from the keys of a configuration: one for each key, ``--set KEY=VALUE`` and ``--config FILE``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ...graphs.config.rag_config import RagConfig
from ...modules.config.config import Config, typed_as
from ...modules.config.typed_values import names_in, typed_value
from ...modules.errors import SettingsError

Command = Callable[..., None]
_SET, _FILE = "set_keys", "config_file"
OLDER = "_older"
"""Ends the name of the parameter of an option that a key had once."""


def takes(
    model: type[Config],
    *,
    only: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
    pairs: bool = True,
    apart: bool = False,
) -> Callable[[Command], Command]:
    """Give a command an option for each key; what they say is its argument ``config``.

    Keys that are not common are hidden options. Options win over ``--set``, and ``--set`` over the file.

    Args:
        model: The configuration.
        only: Keys that are options of the command, and shown; empty for all.
        without: Keys that are no options of the command.
        pairs: Whether it takes ``--set`` and ``--config`` too.
        apart: Hand the command the keys of options and pairs as a mapping, and the path of the file as
            ``config_file``, in place of a configuration made of them.
    """

    def wrap(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [each for each in signature.parameters.values() if each.name not in ("config", _FILE)]
        names = [name for name in only or model.model_fields if name not in without]

        @functools.wraps(command)
        def called(**arguments: Any) -> None:
            options = {name: _given(arguments, name) for name in names}
            keys = pairs_of(arguments.pop(_SET, None) or [], model)
            given = {name: value for name, value in options.items() if value is not None and value != []}
            keys |= {name: _READ[name](value) if name in _READ else value for name, value in given.items()}
            file = arguments.pop(_FILE, None)
            if apart:
                command(**arguments, config=keys, config_file=file)
                return
            keys = {**(model.keys_in(file, what="configuration") if file else {}), **keys}
            check_no_lists(model, keys)
            command(**arguments, config=model.of(keys, where=_place(file)))

        options = [*_options(model, names, shows_all=bool(only)), *(_FREE if pairs else ())]
        called.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in (*own, *options)}
        return called

    return wrap


def _given(arguments: dict[str, Any], name: str) -> Any:
    """Take the value of an option out of the arguments, under its name or its older one."""
    older = arguments.pop(name + OLDER, None)
    value = arguments.pop(name)
    return older if value in (None, []) else value


def _columns(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name.strip() and is_pair for name, is_pair, _ in pairs):
        raise SettingsError(f"--columns {text!r} is not COLUMN=NAME,COLUMN=NAME, such as question=Frage,type=.")
    return {name.strip(): value.strip() for name, _, value in pairs}


_READ: Mapping[str, Callable[[str], object]] = {
    "systems": names_in,
    "ids": names_in,
    "metrics": names_in,
    "columns": _columns,
    "ranker_params": lambda text: pairs_of([f"ranker_params={text}"], RagConfig)["ranker_params"],
}
"""What the command line writes otherwise than a file does."""


def _place(file: Path | None) -> str:
    return f"The configuration {file}" if file else "The configuration"


def check_no_lists(model: type[Config], keys: Mapping[str, object]) -> None:
    """Check that no key that has one value lists several, which only a sweep takes.

    Raises:
        SettingsError: One does.
    """
    for name, value in keys.items():
        if isinstance(value, list) and name in model.model_fields and not _takes_lists(model, name):
            raise SettingsError(
                f"{name}={value!s:.80} lists values, of which `judgetree eval run` makes a grid: give one here."
            )


def _takes_lists(model: type[Config], name: str) -> bool:
    return bool(typed_as(model.model_fields[name].annotation) == list[str])


def pairs_of(pairs: list[str], model: type[Config]) -> dict[str, object]:
    """Return the keys of ``KEY=VALUE`` pairs, with values as YAML has them, and texts as they are typed.

    Raises:
        SettingsError: A pair is none.
    """
    keys: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise SettingsError(f"--set {pair!r} is not KEY=VALUE, such as --set evidence_tokens=2000.")
        try:
            keys[name.strip()] = typed_value(text, model, name.strip())
        except ValueError as error:
            raise SettingsError(f"--set {pair!r}: the value is no YAML ({error}).") from error
    return keys


def _options(model: type[Config], names: list[str], *, shows_all: bool) -> Iterator[inspect.Parameter]:
    for panel, fields in model.groups():
        for name, field in fields.items():
            if name not in names:
                continue
            key = model.key(name)
            kind = str if name in _READ else typed_as(field.annotation)
            words = " ".join((field.description or "").split())
            has_default = not field.is_required() and field.default not in (None, (), False)
            shown = f" Default {field.default}." if has_default else ""
            least = next((each.ge for each in field.metadata if getattr(each, "ge", None) is not None), None)
            how: dict[str, Any] = {"metavar": key.metavar, "rich_help_panel": panel or None}
            how |= {"min": least} if kind in (int, float) and least is not None else {}
            flag, is_hidden = f"--{name.replace('_', '-')}", not (key.common or shows_all)
            yield _option(name, kind, flag, help=f"{words}{shown}", hidden=is_hidden, **how)
            if key.older_flag:
                yield _option(name + OLDER, kind, key.older_flag, hidden=True, **how)


def _option(name: str, kind: Any, flag: str, **how: Any) -> inspect.Parameter:
    given = f"{flag}/--no-{flag[2:]}" if kind is bool else flag
    annotation = Annotated[kind | None, typer.Option(given, **how)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_FREE = (
    _option(
        _SET, list[str], "--set", metavar="KEY=VALUE", help="Any key, such as evidence_tokens=2000; may be repeated."
    ),
    _option(
        _FILE, Path, "--config", metavar="FILE", help="YAML of keys. `judgetree config` lists them; each is an option."
    ),
)
