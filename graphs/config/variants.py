"""Systems with options of their own, such as ``naive(topk=10)``, of which one run may have several."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...modules.config.typed_values import names_in, typed_value
from ...modules.errors import SettingsError, did_you_mean, reason_of
from .rag_config import RagConfig

_OF_RUNS = (*RagConfig.keys_with(is_model=True), "insert_block_llm", "retriever", "search_graph", "tools")
_OPTIONS = tuple(name for name in RagConfig.model_fields if name not in _OF_RUNS)
_LABEL = re.compile(r"(?P<system>[^(]*+(?:\([^()=;]*+\))?+)\((?P<options>[^()=;]++=.*)\)", re.DOTALL)
"""The name of an object may end with a digest in parentheses."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A system with options of its own."""

    system: str
    options: RagConfig = field(default_factory=RagConfig)
    """The keys that are given; the others are those of the run."""

    @property
    def label(self) -> str:
        """Its name in rows, reports and commands, which says all that differs.

        >>> Variant(system="judge", options=RagConfig(judge="batched", topk=5)).label
        'judge(topk=5; judge=batched)'
        """
        given = self.options.model_dump(mode="json", include=set(self.options.given))
        said = "; ".join(f"{name}={_typed(given[name])}" for name in RagConfig.model_fields if name in given)
        return f"{self.system}({said})" if said else self.system


def system_name(label: str) -> str:
    """Return the name of a system without options of its own.

    >>> system_name("naive(topk=10)")
    'naive'
    """
    found = _LABEL.fullmatch(label)
    return found["system"].strip() if found else label


def read_variant(label: str) -> Variant:
    """Read a system and its options, written as ``Variant.label`` writes them, in any order.

    Raises:
        SettingsError: That is no way to write it, an option is unknown, belongs to whole runs or has a wrong value.
    """
    found = _LABEL.fullmatch(label)
    if found is None:
        return Variant(system=label)
    options: dict[str, Any] = {}
    for part in found["options"].split(";"):
        key, equals, value = (text.strip() for text in part.partition("="))
        if not (key and equals and value) or key in options:
            raise SettingsError(f"{label!r:.200} is not NAME(KEY=VALUE; KEY=VALUE), such as naive(topk=10).")
        try:
            options[key] = typed_value(value, RagConfig, key)
        except ValueError as error:
            raise SettingsError(f"{key}={value} of {label!r:.200} is no YAML: {reason_of(error)}.") from error
    return variant_of(found["system"].strip(), options)


def variant_of(system: str, options: Mapping[str, Any]) -> Variant:
    """Return a system with options.

    Raises:
        SettingsError: An option is unknown, belongs to whole runs, or has a value that is not allowed.
    """
    for key in options:
        if key in _OF_RUNS:
            raise SettingsError(
                f"{key} is the same for all systems of a run, so that their difference is their own: leave it out of "
                f"{system!r}, and compare two runs, or a sweep over {key}."
            )
        if key not in _OPTIONS:
            raise SettingsError(
                f"The system {system!r} has no option {key!r}.{did_you_mean(key, _OPTIONS)} Options: "
                f"{', '.join(_OPTIONS)}."
            )
    variant = Variant(system=system, options=RagConfig.of(options, where=f"The system {system!r}"))
    if variant.label.count(";") >= max(len(options), 1) or names_in(variant.label) != (variant.label,):
        raise SettingsError(f"{variant.label!r:.200}: no option may have a ; or an odd parenthesis in its value.")
    return variant


def _typed(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
