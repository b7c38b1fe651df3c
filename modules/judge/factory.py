"""Judges by the names of their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, cast

from langchain_core.documents import Document

from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..calls.usage import CallMeter
from ..errors import SettingsError
from ..llm.endpoint import ChatLLM
from ..llm.factory import is_local
from ..llm.wrapper import model_fingerprint
from ..parts import Part, check_name, fingerprint_of, made, needs_making, part_of, surviving_exit, wanted_by
from ..settings import Settings, load_settings
from .contract import Judge, Verdict
from .generated import GeneratedJudge
from .logprob import LogprobJudge
from .thresholds import find_thresholds

JudgeKind = Literal["auto", "generated", "logprob"]
"""Kinds of judges made from a model; ``OracleJudge`` is made from gold facts instead."""


def _logprob(llm: ChatLLM, settings: Settings | None, prompts: Prompts) -> Judge:
    thresholds = find_thresholds(llm.model, settings or load_settings(), prompts)
    fallback = GeneratedJudge(llm, prompts=prompts)
    return LogprobJudge(llm, thresholds=thresholds, fallback=fallback, prompts=prompts)


JUDGES: dict[str, Callable[[ChatLLM, Settings | None, Prompts], Judge]] = {
    "generated": lambda llm, _, prompts: GeneratedJudge(llm, prompts=prompts),
    "logprob": _logprob,
}


def create_judge(
    kind: str | object,
    llm: ChatLLM,
    *,
    spec: str,
    settings: Settings | None = None,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> Judge:
    """Create a judge; ``auto`` is ``logprob`` for a local model and ``generated`` for any other.

    Args:
        kind: "auto", "generated", "logprob", or a judge of one's own: a judge, or a class or function that
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
    if not all(callable(getattr(judge, method, None)) for method in ("judge", "fingerprint")):
        raise SettingsError(
            f"{part.name!r} gives {judge!r:.100}. Give it the methods judge and fingerprint of a Judge."
        )
    if part.is_built_in:
        return cast(Judge, judge)
    own = {"prompts": prompts.digest} if prompts.digest and _takes("prompts", part) else {}
    if _takes("llm", part):
        own |= {f"llm.{key}": value for key, value in model_fingerprint(llm).items()}
    return OwnJudge(cast(Judge, judge), part, made_with=own)


def _takes(name: str, part: Part) -> bool:
    wanted = wanted_by(part) if needs_making(part) else frozenset()
    return wanted is None or name in wanted


class OwnJudge:
    """A judge of one's own, whose name and source are in its fingerprint: a changed judge is another one."""

    def __init__(self, inner: Judge, part: Part, *, made_with: Mapping[str, str]) -> None:
        """``made_with``: the model and prompts that it was given, for the fingerprint."""
        self._inner = inner
        self._part = part
        self._made_with = made_with

    def fingerprint(self) -> dict[str, str]:
        """Return the fingerprint of the judge, with its name, its source, and the model and prompts that it took."""
        return {**fingerprint_of(self._part, self._inner), **self._made_with}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """Judge by the inner judge."""
        with surviving_exit(self._part):
            return await self._inner.judge(query, chunk, meter=meter, expand=expand)
