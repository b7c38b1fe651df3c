"""``judgetree config``: the keys of a question's configuration, which are options, ``--set`` and lines of a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, get_args

import typer

from ...graphs.config.rag_config import RagConfig
from ...modules.config.config import Config, typed_as
from ..terminal.terminal import write_json, write_rows
from .options import Json


@dataclass(frozen=True, kw_only=True)
class KeyShown:
    """One key."""

    name: str
    group: str
    default: str
    """``""`` for a key without one, and for one that is off."""
    values: str
    """What is allowed, where that is a choice."""
    per_question: bool
    """Whether a question of a session or chat may have another value."""
    meaning: str


def config(
    runs: Annotated[bool, typer.Option("--runs", help="List those of evaluation runs too.")] = False,
    as_json: Json = False,
) -> None:
    """List the keys of --set and --config, which are options too: name, default, meaning.

    Examples:
        judgetree config
    """
    keys: type[Config] = RagConfig
    if runs:
        from ...evaluation.runs.experiment import Experiment

        keys = Experiment
    listed = keys_of(keys)
    if as_json:
        write_json([asdict(each) for each in listed])
        return
    write_rows(((each.name, "bold"), (each.default or "-", ""), (each.meaning, "dim")) for each in listed)


def keys_of(config: type[Config]) -> list[KeyShown]:
    """Return the keys of a configuration, group by group."""
    return [
        KeyShown(
            name=name,
            group=group or "Run",
            default="" if field.is_required() or field.default in (None, (), False) else str(field.default),
            values=", ".join(map(str, get_args(typed_as(field.annotation)))),
            per_question=config.key(name).per_question,
            meaning=" ".join((field.description or "").split()),
        )
        for group, fields in config.groups()
        for name, field in fields.items()
    ]
