"""Judges by the names of their kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ..errors import SettingsError
from ..llm.endpoint import ChatLLM
from ..llm.factory import is_local
from ..settings import Settings, load_settings
from .contract import Judge
from .generated import GeneratedJudge
from .logprob import LogprobJudge
from .thresholds import find_thresholds

JudgeKind = Literal["auto", "generated", "logprob"]
"""Kinds of judges made from a model; ``OracleJudge`` is made from gold facts instead."""


def _logprob(llm: ChatLLM, settings: Settings | None) -> Judge:
    thresholds = find_thresholds(llm.model, settings or load_settings())
    return LogprobJudge(llm, thresholds=thresholds, fallback=GeneratedJudge(llm))


JUDGES: dict[str, Callable[[ChatLLM, Settings | None], Judge]] = {
    "generated": lambda llm, _: GeneratedJudge(llm),
    "logprob": _logprob,
}


def create_judge(kind: str, llm: ChatLLM, *, spec: str, settings: Settings | None = None) -> Judge:
    """Create a judge; ``auto`` is ``logprob`` for a local model and ``generated`` for any other.

    Args:
        kind: "auto", "generated" or "logprob".
        llm: The model that judges.
        spec: The model's spec in the settings.
        settings: Source of the thresholds of ``logprob`` (``find_thresholds``); None reads environment and ``.env``.

    Raises:
        SettingsError: The kind is unknown, or the file of calibrated thresholds is damaged.
    """
    if kind == "auto":
        kind = "logprob" if is_local(spec) else "generated"
    if kind not in JUDGES:
        raise SettingsError(f"Unknown judge {kind!r}. Allowed: auto, {', '.join(JUDGES)}.")
    return JUDGES[kind](llm, settings)
