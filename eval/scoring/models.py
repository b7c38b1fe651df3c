"""The model that scores: one of the settings, with cache, and limits on calls and money."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from ...modules.calls.prices import LOCAL, Prices
from ...modules.config.models import CacheMode
from ...modules.llm.cache import CachedLLM, CompletionCache
from ...modules.llm.call_gate import CallGate
from ...modules.llm.contract import ChatLLM
from ...modules.llm.factory import create_llm, is_local
from ...modules.llm.tuned import bounded
from ...modules.progress import StageProgress
from ...modules.settings import Settings
from ..runs.limits import LimitedLLM, Spending, check_models_priced


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """The rows to score, the model, and what all calls with the same metrics and model may spend in a run directory.

    >>> ScoringOptions(llm="openai:gpt-4o-mini", max_cost=1.0).limit is None
    True
    """

    systems: tuple[str, ...] | None = None
    """Systems to score; None for all."""
    llm: str | None = None
    """The scoring model, as in JUDGETREE_LLM; None takes that of the settings."""
    limit: int | None = None
    """Number of questions to score, in the order of the run; None for all."""
    concurrency: int = 8
    """Samples scored at once; ``Settings.max_concurrency`` limits the model calls."""
    cache: CacheMode = "write"
    retry_failed: bool = False
    """Score failed samples again."""
    max_calls: int | None = None
    """Chat calls that may be paid for, those of earlier calls included; None is no limit."""
    max_tokens: int | None = None
    """The same for tokens."""
    max_cost: float | None = None
    """The same for US dollars."""


@dataclass(frozen=True, kw_only=True)
class ScoringModel:
    """An open chat model, and the endpoint that its name belongs to."""

    llm: ChatLLM
    endpoint: str


def open_scoring_model(
    settings: Settings,
    resources: ExitStack,
    *,
    options: ScoringOptions,
    prices: Prices,
    spending: Spending,
    on_progress: StageProgress | None = None,
) -> ScoringModel:
    """Open the model of the settings, whose replies are kept with those of runs; ``resources`` closes the cache.

    Raises:
        UserError: A wrong name or key, or a ``max_cost`` for a model without a price.
    """
    check_models_priced(options.max_cost, [("chat", settings.llm_spec)], settings, prices)
    kept = resources.enter_context(CompletionCache(settings.home / "completions.sqlite"))
    llm = create_llm(settings.llm_spec, settings, CallGate(settings.max_concurrency), on_progress=on_progress)
    billed_as = f"{LOCAL}{llm.model}" if is_local(settings.llm_spec) else llm.model
    limited = LimitedLLM(llm, spending, billed_as=billed_as)
    cached = CachedLLM(limited, kept, endpoint=llm.endpoint, mode=options.cache)
    return ScoringModel(llm=bounded(cached, settings.llm_max_tokens), endpoint=llm.endpoint)
