"""Judges by the names of their kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

from langchain_core.documents import Document

from ..calls.usage import CallMeter
from ..errors import SettingsError
from ..llm.endpoint import ChatLLM
from ..llm.factory import is_local
from ..parts import Part, check_name, fingerprint_of, made, part_of, surviving_exit
from ..settings import Settings, load_settings
from .contract import Judge, Verdict
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


def create_judge(kind: str | object, llm: ChatLLM, *, spec: str, settings: Settings | None = None) -> Judge:
    """Create a judge; ``auto`` is ``logprob`` for a local model and ``generated`` for any other.

    Args:
        kind: "auto", "generated", "logprob", or a judge of one's own: a judge, or a class or function that
            makes one and may take ``llm`` and ``settings``; itself, its ``module:name`` or a plug-in's name.
        llm: The model that judges.
        spec: The model's spec in the settings.
        settings: Source of the thresholds of ``logprob`` (``find_thresholds``); None reads environment and ``.env``.

    Raises:
        SettingsError: The kind is unknown, a judge of one's own cannot be made, or the file of calibrated thresholds is
            damaged.
    """
    if kind == "auto":
        kind = "logprob" if is_local(spec) else "generated"
    if isinstance(kind, str):
        check_name("judge", kind, ("auto", *JUDGES))
        if kind in JUDGES:
            return JUDGES[kind](llm, settings)
    part = part_of("judge", kind)
    judge = made(part, llm=llm, settings=settings or load_settings())
    if not all(callable(getattr(judge, method, None)) for method in ("judge", "fingerprint")):
        raise SettingsError(
            f"{part.name!r} gives {judge!r:.100}. Give it the methods judge and fingerprint of a Judge."
        )
    return cast(Judge, judge) if part.is_built_in else OwnJudge(cast(Judge, judge), part)


class OwnJudge:
    """A judge of one's own, whose name and source are in its fingerprint: a changed judge is another one."""

    def __init__(self, inner: Judge, part: Part) -> None:
        self._inner = inner
        self._part = part

    def fingerprint(self) -> dict[str, str]:
        """Return the fingerprint of the judge, with its name and source."""
        return fingerprint_of(self._part, self._inner)

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """Judge by the inner judge."""
        with surviving_exit(self._part):
            return await self._inner.judge(query, chunk, meter=meter, expand=expand)
