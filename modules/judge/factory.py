"""Judges by the names of their kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..errors import SettingsError
from ..llm.endpoint import ChatLLM
from ..llm.factory import is_local
from ..llm.wrapper import model_fingerprint
from ..parts import Part, check_name, fingerprint_of, made, needs_making, part_of, surviving_exit, wanted_by
from ..settings import Settings, load_settings
from .batched import BatchedJudge
from .contract import AnyJudge, Judge, is_judge
from .generated import GeneratedJudge
from .logprob import LogprobJudge
from .thresholds import find_thresholds
from .wrapper import wrapped

JudgeKind = Literal["auto", "generated", "batched", "logprob"]
"""Kinds of judges made from a model; ``OracleJudge`` is made from gold facts instead."""


def _logprob(llm: ChatLLM, settings: Settings | None, prompts: Prompts) -> Judge:
    thresholds = find_thresholds(llm.model, settings or load_settings(), prompts)
    fallback = GeneratedJudge(llm, prompts=prompts)
    return LogprobJudge(llm, thresholds=thresholds, fallback=fallback, prompts=prompts)


JUDGES: dict[str, Callable[[ChatLLM, Settings | None, Prompts], AnyJudge]] = {
    "generated": lambda llm, _, prompts: GeneratedJudge(llm, prompts=prompts),
    "batched": lambda llm, _, prompts: BatchedJudge(llm, prompts=prompts),
    "logprob": _logprob,
}


def create_judge(
    kind: str | object,
    llm: ChatLLM,
    *,
    spec: str,
    settings: Settings | None = None,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> AnyJudge:
    """Create a judge; ``auto`` is ``logprob`` for a local model and ``generated`` for any other.

    Args:
        kind: "auto", a name in ``JUDGES``, or a judge of one's own: a judge, or a class or function that
            makes one and may take ``llm``, ``settings`` and ``prompts``; itself, its ``module:name`` or a plug-in.
        llm: The model that judges.
        spec: The model's spec in the settings.
        settings: Source of the thresholds of ``logprob`` (``find_thresholds``); None reads environment and ``.env``.
        prompts: Prompts of one's own. A judge of one's own that takes them has their digest in its fingerprint, and
            one that takes the model has its name.

    Raises:
        SettingsError: The kind is unknown, a judge of one's own cannot be made, or the file of calibrated thresholds is
            damaged.
    """
    if kind == "auto":
        kind = "logprob" if is_local(spec) else "generated"
    if isinstance(kind, str):
        check_name("judge", kind, ("auto", *JUDGES))
        if kind in JUDGES:
            return JUDGES[kind](llm, settings, prompts)
    part = part_of("judge", kind)
    judge = made(part, llm=llm, settings=settings or load_settings(), prompts=prompts)
    if not is_judge(judge):
        raise SettingsError(
            f"{part.name!r} gives {judge!r:.100}. Give it the methods fingerprint and judge of a Judge, or fingerprint "
            "and judge_set of a SetJudge."
        )
    if part.is_built_in:
        return judge
    own = {"prompts": prompts.digest} if prompts.digest and _takes("prompts", part) else {}
    if _takes("llm", part):
        own |= {f"llm.{key}": value for key, value in model_fingerprint(llm).items()}
    return wrapped(
        judge,
        around=lambda meter: surviving_exit(part),
        fingerprint=lambda: {**fingerprint_of(part, judge), **own},
    )


def _takes(name: str, part: Part) -> bool:
    wanted = wanted_by(part) if needs_making(part) else frozenset()
    return wanted is None or name in wanted
