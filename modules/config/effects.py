"""Which keys have an effect, by what they need (``Key.needs``): a trait of the system or questions, or another key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import cast

from .config import Config, Trait

LACKS: Mapping[Trait, str] = {
    "retriever": "searches nothing",
    "judge": "judges nothing",
    "sub_questions": "asks no sub-questions",
    "depth": "asks no further questions",
    "tools": "uses no tools",
    "dialogues": "leads no conversation",
}
"""What is said of a system without a trait."""
_HAVING: Mapping[str, str] = {
    "retriever": "a system that searches",
    "judge": "a system that judges",
    "sub_questions": "a system whose chunks ask sub-questions",
    "depth": "a system that asks further questions",
    "tools": "a system that uses tools",
    "dialogues": "questions of dialogues",
}
_MOST_SHOWN = 80
ValueOf = Callable[[str], object]
"""Returns the value of a key, that of the configuration or its default."""


def lacking(model: type[Config], name: str, has: Set[Trait]) -> Trait | None:
    """Return a trait without which a key can have no effect, whatever the other keys say; None if it can have one.

    Args:
        model: The configuration.
        name: The key.
        has: What the system has.
    """
    missing: list[Trait] = []
    for need in model.key(name).needs:
        is_trait = need in LACKS
        lack = cast(Trait, need) if is_trait else lacking(model, need.partition("=")[0], has)
        if lack is None or lack in has:
            return None
        missing.append(lack)
    return missing[0] if missing else None


def has_effect(model: type[Config], name: str, has: Set[Trait], value_of: ValueOf) -> bool:
    """Return whether a key that is given has an effect, beside the values of the other keys."""
    needs = model.key(name).needs
    return not needs or any(_is_there(model, need, has, value_of) for need in needs)


def words_without_effect(model: type[Config], name: str, shown: str) -> str:
    """Return the sentence that a key, whose value is ``shown``, has no effect, and what would give it one.

    >>> from judgetree import RagConfig
    >>> words_without_effect(RagConfig, "judge_llm", "openai:gpt-4o")
    'judge_llm=openai:gpt-4o has no effect: it needs a system that judges, or insert_block.'
    """
    wanted = ", or ".join(_HAVING.get(need, need) for need in model.key(name).needs)
    return f"{name}={shown[:_MOST_SHOWN]} has no effect: it needs {wanted}."


def _is_there(model: type[Config], need: str, has: Set[Trait], value_of: ValueOf) -> bool:
    if need in LACKS:
        return need in has
    name, is_exact, wanted = need.partition("=")
    value = value_of(name)
    is_set = str(value) in wanted.split("|") if is_exact else value != model.model_fields[name].default
    return is_set and has_effect(model, name, has, value_of)
