"""The local embedder for the scripts of a collection's texts: ``JUDGETREE_EMBEDDINGS=auto``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..language.scripts import ENGLISH, LATIN, script_shares
from .embedder import Embedder

LocalModel = Literal["local:minilm", "local:use"]
MINILM: LocalModel = "local:minilm"
USE: LocalModel = "local:use"

MODELS: Mapping[str, tuple[LocalModel, ...]] = {
    ENGLISH: (MINILM, USE),
    **dict.fromkeys((LATIN, "Arabic", "Chinese", "Cyrillic", "Japanese", "Korean", "Thai"), (USE,)),
}
"""The local models that find texts of a script, the better one first; no other script has one. Measured by
``python -m benchmarks scripts``."""
_SHARE = 0.05
"""Share of letters from which a script counts."""
_LATIN_SHARE = 0.2
"""That of other Latin texts beside English ones, whose lists of foreign names look like them."""
_HOSTED = "a hosted model of many languages, such as openai:text-embedding-3-small or dashscope:text-embedding-v4"


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """A local embedder, and why."""

    model: LocalModel
    why: str
    """The scripts with their shares, such as "82 % Thai, 18 % English"; "no letters"."""


def choose_model(texts: Sequence[str]) -> ModelChoice:
    """Choose ``local:use`` if one letter in 20 is of a script that it alone knows, else ``local:minilm``.

    Latin texts other than English count from a fifth of the letters. Of many texts a sample decides, see
    ``script_shares``.

    >>> choose_model(["ปั๊มน้ำหยุด"])
    ModelChoice(model='local:use', why='100 % Thai')
    """
    shares = script_shares(texts)
    counted = [script for script, share in shares.items() if _counts(script, share, shares)]
    is_for_use = any(MODELS.get(script) == (USE,) for script in counted)
    why = ", ".join(f"{100 * shares[script]:.0f} % {script}" for script in counted)
    return ModelChoice(model=USE if is_for_use else MINILM, why=why or "no letters")


def unknown_scripts(embedder: str, texts: Sequence[str]) -> list[str]:
    """Return the scripts of texts that a local embedder does not know; none for any other embedder.

    >>> unknown_scripts("local:use", ["Η αντλία"]), unknown_scripts("local:minilm", ["Насос"])
    (['Greek'], ['Cyrillic'])
    """
    if embedder not in (MINILM, USE):
        return []
    shares = script_shares(texts)
    counted = (script for script, share in shares.items() if _counts(script, share, shares))
    return [script for script in counted if embedder not in MODELS.get(script, ())]


def unknown_text(embedder: str, scripts: Sequence[str]) -> str:
    """Return the sentence that tells of scripts that an embedder does not know, with what to do."""
    known_by = {model for script in scripts for model in MODELS.get(script, ())}
    remedy = USE if known_by == {USE} and all(script in MODELS for script in scripts) else _HOSTED
    return (
        f"{embedder} does not know {', '.join(scripts)}: searches by meaning will miss much of it. Index it under "
        f"another name with JUDGETREE_EMBEDDINGS set to {remedy}."
    )


class EmbedderByScript:
    """An embedder for a collection by the scripts of its texts; an existing collection keeps its own."""

    def __init__(self, create: Callable[[str], Embedder]) -> None:
        """``create`` makes the embedder of a spec."""
        self._create = create

    def for_texts(self, texts: Sequence[str]) -> tuple[Embedder, ModelChoice]:
        """Return the embedder for the texts of a new collection, and why."""
        choice = choose_model(texts)
        return self._create(choice.model), choice

    def named(self, name: str) -> Embedder:
        """Return the local embedder of this name; ``local:minilm`` if it is none, which the collection refuses."""
        return self._create(name if name in (MINILM, USE) else MINILM)


def _counts(script: str, share: float, shares: Mapping[str, float]) -> bool:
    return share > (_LATIN_SHARE if script == LATIN and shares.get(ENGLISH, 0) > share else _SHARE)
