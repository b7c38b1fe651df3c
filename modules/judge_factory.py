"""From the name of a kind of judge to the judge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from .errors import SettingsError
from .judge import Judge
from .judge_generated import GeneratedJudge
from .judge_logprob import LogprobJudge
from .llm import ChatLLM
from .llm_factory import is_local

JudgeKind = Literal["auto", "generated", "logprob"]
"""The oracle is not among them: it is made from gold facts, not from a model."""


def _logprob(llm: ChatLLM) -> Judge:
    return LogprobJudge(llm, fallback=GeneratedJudge(llm))


JUDGES: dict[str, Callable[[ChatLLM], Judge]] = {"generated": GeneratedJudge, "logprob": _logprob}


def create_judge(kind: str, llm: ChatLLM, *, spec: str) -> Judge:
    """The judge of a kind; ``auto`` takes ``logprob`` for a local model and ``generated`` for any other.

    Raises:
        SettingsError: No such kind.
    """
    if kind == "auto":
        kind = "logprob" if is_local(spec) else "generated"
    if kind not in JUDGES:
        raise SettingsError(f"Unknown judge {kind!r}. Allowed: auto, {', '.join(JUDGES)}.")
    return JUDGES[kind](llm)
