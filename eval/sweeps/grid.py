"""The grid of a sweep: an experiment for each combination of the values that some keys list."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...graphs.config.rag_config import RagConfig
from ...modules.config.retrieval import OF_BUILT_IN_SEARCH
from ...modules.digests import text_digest
from ...modules.errors import SettingsError
from ...modules.parts import register_object
from ...modules.retriever.own import check_beside
from ...modules.settings import without_secrets
from ..runs.experiment import Experiment, check_keys, experiment_keys, load_experiment

_LISTS = ("systems", "tools", "ids", "metrics")
"""The keys whose own value is a list."""
SWEPT = tuple(name for name in (*RagConfig.model_fields, "corpus", "history") if name not in _LISTS)
"""The keys of an experiment that may list values: each is one value of one run, and the questions stay the same."""
_LONGEST_NAME = 80
_LEFT_OUT = "default"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One combination of a sweep."""

    values: Mapping[str, object]
    """By key, in the order of the file, without secrets; "default" for a key that is left out."""
    experiment: Experiment

    @property
    def label(self) -> str:
        """The combination in words, such as "topk 3, judge auto"."""
        return ", ".join(f"{key} {value}" for key, value in self.values.items())

    @property
    def name(self) -> str:
        """The name of its run directory, such as "topk=3,judge=auto", with a digest where a value is no plain word."""
        plain = ",".join(f"{key}={value}" for key, value in self.values.items())
        safe = re.sub(r"[^\w=,.-]+", "_", plain)[:_LONGEST_NAME]
        if safe == plain:
            return plain
        return f"{safe}-{text_digest(json.dumps([*self.values.items()])).hex()[:8]}"


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A grid of experiments over the same questions."""

    axes: Mapping[str, tuple[object, ...]]
    """The values of each swept key, in the order of the file."""
    points: tuple[Point, ...]
    """Every combination, the last key changing fastest."""


def is_sweep(path: Path | None, **overrides: object) -> bool:
    """Whether an experiment file with these keys lists values for a key that has one."""
    return any(True for _ in _listed(experiment_keys(path, **overrides)))


def load_sweep(path: Path | None = None, **overrides: object) -> Sweep:
    """Read a sweep from a YAML file; keyword arguments that are not None win.

    >>> sweep = load_sweep(dataset="hotpotqa:dev.json", topk=[3, 5], judge=["auto", "logprob"])
    >>> [point.name for point in sweep.points][:2]
    ['topk=3,judge=auto', 'topk=3,judge=logprob']

    Raises:
        SettingsError: A key is unknown, none lists values, one that does cannot be swept, or a combination is not
            allowed.
    """
    keys = experiment_keys(path, **overrides)
    check_keys(keys, path)
    axes = {key: _values(key, listed) for key, listed in _listed(keys)}
    if not axes:
        raise SettingsError(
            f"No key lists values. Give one or more of {', '.join(SWEPT)} as a list, as in topk: [3, 5]."
        )
    points = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        try:
            experiment = load_experiment(None, **_keys_of_point(keys, chosen, axes))
            check_beside(experiment.retriever, experiment)
        except SettingsError as error:
            shown = ", ".join(f"{key}: {_public(value)}" for key, value in chosen.items())
            raise SettingsError(f"The combination {shown} cannot be run. {error}") from error
        saved = experiment.model_dump(mode="json", include=set(axes))
        saved |= {"prompts": chosen["prompts"]} if "prompts" in chosen else {}  # the file, not what stands in it
        points.append(
            Point(values={key: _LEFT_OUT if saved[key] is None else saved[key] for key in axes}, experiment=experiment)
        )
    if len({point.name for point in points}) < len(points):
        raise SettingsError("Two combinations of the sweep are the same, but for secrets in addresses. Leave one out.")
    return Sweep(axes=axes, points=tuple(points))


def _keys_of_point(
    keys: Mapping[str, object], chosen: Mapping[str, object], axes: Mapping[str, Sequence[object]]
) -> dict[str, object]:
    """Return the keys of one experiment; those of the built-in search alone where others of the grid have it."""
    has_own = chosen.get("retriever") is not None and None in axes["retriever"]
    unused = {name for name in OF_BUILT_IN_SEARCH if has_own and name not in axes}
    return {name: value for name, value in {**keys, **chosen}.items() if name not in unused}


def _listed(keys: Mapping[str, object]) -> Iterator[tuple[str, Sequence[object]]]:
    for key, value in keys.items():
        if key in Experiment.model_fields and key not in _LISTS and isinstance(value, list | tuple):
            yield key, value


def _values(key: str, listed: Sequence[object]) -> tuple[object, ...]:
    shown = f"{key}: {[*map(_public, listed)]!r:.80}"
    if key not in SWEPT:
        raise SettingsError(f"{shown} cannot be swept. A list makes a grid for {', '.join(SWEPT)}.")
    if not listed:
        raise SettingsError(f"{key}: [] lists no value. Give one or more.")
    if any(isinstance(value, list | tuple | dict) for value in listed):
        raise SettingsError(f"{shown} lists something else than single values.")
    values = tuple(
        value if value is None or isinstance(value, str | int | float) else register_object(value) for value in listed
    )
    if len({json.dumps(value) for value in values}) < len(values):
        raise SettingsError(f"{shown} lists a value twice. Leave one out.")
    return values


def _public(value: object) -> object:
    return without_secrets(value) if isinstance(value, str) else value
