"""Judges by the names of their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from pydantic import NonNegativeInt

from ..calls.prompts import DEFAULT_PROMPTS, Prompts
from ..embedding.choice import MINILM
from ..embedding.embedder import Embedder, create_embeddings
from ..errors import SettingsError
from ..llm.contract import ChatLLM, model_fingerprint
from ..llm.factory import is_local
from ..llm.rate_limit import Admissions
from ..parts import Part, accepted_arguments, check_name, fingerprint_of, guard_exit, instantiate, needs_making, part_of
from ..settings import Settings, load_settings
from ..specs import name_in, parse_spec
from .asker import SubQuestionAsker
from .batched import BatchedJudge
from .cascade import CascadeJudge
from .contract import AnyJudge, is_judge, may_be_judge
from .embedding import EmbeddingJudge, Similarity
from .fits import calibrated, find_fit, made_for, require_fit
from .fused import UNFITTED, FusedJudge
from .generated import GeneratedJudge
from .gold import GoldTable
from .logprob import LogprobJudge
from .noise import Noise
from .noisy import noisy_judge
from .thresholds import UNCALIBRATED, LogprobThresholds, find_thresholds
from .wrapper import wrapped

JudgeKind = Literal["auto", "generated", "batched", "logprob", "embedding", "cascade", "fused", "noisy"]
"""Kinds of judges by name; ``OracleJudge`` is made from gold facts instead."""


@dataclass(frozen=True, kw_only=True)
class _Given:
    """What judges are made from."""

    llm: ChatLLM
    spec: str
    settings: Settings
    prompts: Prompts
    gold: GoldTable | None
    fitted: bool
    admissions: Admissions | None

    def embedder(self, named: str) -> Embedder:
        """Return the embedder of a judge: that of its parameter, else of the settings, else the English local one."""
        return judge_embedder(self.settings, named, self.admissions)

    def asker(self) -> SubQuestionAsker:
        return SubQuestionAsker(self.llm, prompts=self.prompts)

    def rater(self) -> LogprobJudge:
        return LogprobJudge(self.llm, prompts=self.prompts)


class _Kind(Protocol):
    """The parameters of a judge in its spec; makes it."""

    def make(self, given: _Given) -> AnyJudge: ...


@dataclass(frozen=True, kw_only=True)
class _Auto:
    def make(self, given: _Given) -> AnyJudge:
        return _Logprob().make(given) if is_local(given.spec) else _Generated().make(given)


@dataclass(frozen=True, kw_only=True)
class _Generated:
    max_repairs: NonNegativeInt = 2

    def make(self, given: _Given) -> AnyJudge:
        return _with_curve(GeneratedJudge(given.llm, max_repairs=self.max_repairs, prompts=given.prompts), given)


@dataclass(frozen=True, kw_only=True)
class _Batched:
    max_repairs: NonNegativeInt = 2

    def make(self, given: _Given) -> AnyJudge:
        return _with_curve(BatchedJudge(given.llm, max_repairs=self.max_repairs, prompts=given.prompts), given)


@dataclass(frozen=True, kw_only=True)
class _Logprob:
    def make(self, given: _Given) -> AnyJudge:
        thresholds = find_thresholds(given.llm.model, given.settings, given.prompts)
        fallback = GeneratedJudge(given.llm, prompts=given.prompts)
        judge = LogprobJudge(given.llm, thresholds=thresholds, fallback=fallback, prompts=given.prompts)
        return _with_curve(judge, given)


@dataclass(frozen=True, kw_only=True)
class _Embedding:
    embedder: str = ""
    writer: Literal["model", "template"] = "model"

    def make(self, given: _Given) -> AnyJudge:
        asker = given.asker() if self.writer == "model" else None
        judge = EmbeddingJudge(given.embedder(self.embedder), UNCALIBRATED, asker=asker)
        if not given.fitted:
            return judge
        fit = require_fit(made_for(judge), given.settings)
        thresholds = LogprobThresholds(needed=fit.parameters["needed"], alone=fit.parameters.get("alone"))
        return calibrated(EmbeddingJudge(given.embedder(self.embedder), thresholds, asker=asker), fit)


@dataclass(frozen=True, kw_only=True)
class _Cascade:
    embedder: str = ""
    judge: Literal["auto", "generated", "batched", "logprob"] = "auto"

    def make(self, given: _Given) -> AnyJudge:
        similarity, inner = Similarity(given.embedder(self.embedder)), _KINDS[self.judge]().make(given)
        judge = CascadeJudge(similarity, low=0.0, high=1.0, inner=inner, asker=given.asker())
        if not given.fitted:
            return judge
        fit = require_fit(made_for(judge), given.settings)
        low, high = fit.parameters["low"], fit.parameters["high"]
        return CascadeJudge(similarity, low=low, high=high, inner=inner, asker=given.asker(), curve=fit.curve)


@dataclass(frozen=True, kw_only=True)
class _Fused:
    embedder: str = ""

    def make(self, given: _Given) -> AnyJudge:
        rater, similarity = given.rater(), Similarity(given.embedder(self.embedder))
        judge = FusedJudge(rater, similarity, UNFITTED, asker=given.asker())
        if not given.fitted:
            return judge
        fit = require_fit(made_for(judge), given.settings)
        return calibrated(FusedJudge(rater, similarity, fit.parameters, asker=given.asker()), fit)


@dataclass(frozen=True, kw_only=True)
class _Noisy(Noise):
    def make(self, given: _Given) -> AnyJudge:
        if given.gold is None:
            raise SettingsError(
                "The judge noisy knows the gold documents of a data set, so it works in `judgetree eval run` only; in "
                "Python, give noisy_judge(GoldTable(…), Noise(…))."
            )
        return noisy_judge(given.gold, self)


_KINDS: Mapping[str, type[_Kind]] = {
    "auto": _Auto,
    "generated": _Generated,
    "batched": _Batched,
    "logprob": _Logprob,
    "embedding": _Embedding,
    "cascade": _Cascade,
    "fused": _Fused,
    "noisy": _Noisy,
}


def _with_curve(judge: AnyJudge, given: _Given) -> AnyJudge:
    return calibrated(judge, find_fit(made_for(judge), given.settings)) if given.fitted else judge


def judge_embedder(settings: Settings, named: str = "", admissions: Admissions | None = None) -> Embedder:
    """Return the embedder of a judge: the one ``named``, else that of the settings, else the English local one."""
    chosen = settings.embeddings if settings.embeddings != "auto" else MINILM
    return create_embeddings(named or chosen, settings, admissions=admissions)


def is_own_judge(kind: str) -> bool:
    """Whether a judge's name is none of ours: a plug-in's, or an import path.

    Raises:
        SettingsError: It is no name of a judge, or a parameter is wrong.
    """
    if name_in(kind) in _KINDS:
        parse_spec("judge", kind, _KINDS)
        return False
    check_name("judge", kind, tuple(_KINDS))
    return True


def own_judge(kind: str | object) -> Part | None:
    """Return a judge of one's own before it is made, checked as far as that goes; None for one of ours.

    Raises:
        SettingsError: It is unknown, cannot be imported, or its class or object lacks the methods of a judge.
    """
    if isinstance(kind, str) and not is_own_judge(kind):
        return None
    part = part_of("judge", kind)
    if not may_be_judge(part.value):
        raise _no_judge(part, part.value)
    return part


def _no_judge(part: Part, given: object) -> SettingsError:
    return SettingsError(
        f"{part.name!r} gives {given!r:.100}. Give it the methods fingerprint and judge of a Judge, or fingerprint "
        "and judge_set of a SetJudge."
    )


def noise_of(kind: str) -> Noise | None:
    """Return the parameters of the judge noisy; None for another judge."""
    return cast(Noise, parse_spec("judge", kind, _KINDS)) if name_in(kind) == "noisy" else None


def create_judge(
    kind: str | object,
    llm: ChatLLM,
    *,
    spec: str,
    settings: Settings | None = None,
    prompts: Prompts = DEFAULT_PROMPTS,
    gold: GoldTable | None = None,
    fitted: bool = True,
    admissions: Admissions | None = None,
) -> AnyJudge:
    """Create a judge; ``auto`` is ``logprob`` for a local model and ``generated`` for any other.

    Args:
        kind: A name of ``JudgeKind``, with parameters such as "cascade:judge=batched", or a judge of one's own: a
            judge, or a class or function that makes one and may take ``llm``, ``settings`` and ``prompts``; itself,
            its ``module:name`` or a plug-in.
        llm: The model that judges.
        spec: The model's spec in the settings.
        settings: Source of thresholds, curves and embedder; None reads environment and ``.env``.
        prompts: Prompts of one's own. A judge of one's own that takes them has their digest in its fingerprint, and
            one that takes the model has its name.
        gold: Gold documents, for ``noisy``.
        fitted: Whether to use what was fitted for the judge; without it, P(needed) is as the judge gives it.
        admissions: Rate limits of the judge's embedder that other processes share.

    Raises:
        SettingsError: The kind is unknown, a judge of one's own cannot be made, a fit is missing or made for another
            model or embedder, or a file of fits is damaged.
    """
    settings = settings or load_settings()
    part = own_judge(kind)
    if part is None:
        given = _Given(
            llm=llm,
            spec=spec,
            settings=settings,
            prompts=prompts,
            gold=gold,
            fitted=fitted,
            admissions=admissions,
        )
        return parse_spec("judge", str(kind), _KINDS).make(given)
    judge = instantiate(part, llm=llm, settings=settings, prompts=prompts)
    if not is_judge(judge):
        raise _no_judge(part, judge)
    if part.is_built_in:
        return judge
    own = {"prompts": prompts.digest} if prompts.digest and _takes("prompts", part) else {}
    if _takes("llm", part):
        own |= {f"llm.{key}": value for key, value in model_fingerprint(llm).items()}
    return wrapped(
        judge,
        around=lambda meter: guard_exit(part.name),
        fingerprint=lambda: {**fingerprint_of(part, judge), **own},
    )


def _takes(name: str, part: Part) -> bool:
    wanted = accepted_arguments(part) if needs_making(part) else frozenset()
    return wanted is None or name in wanted
