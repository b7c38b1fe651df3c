"""What a run has paid so far, in calls, tokens and money, against what it may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...graphs.systems import SYSTEMS
from ...modules.errors import SettingsError
from ...modules.prices import FILE_NAME, FREE, UNKNOWN, Cost, Prices
from ...modules.settings import Settings, without_secrets
from ...modules.usage import CallKind
from .experiment import RETRIEVING, Experiment
from .store import RunRow


class Spending:
    """Counts what questions pay; a run looks at it before each question, so what is under way may exceed a limit."""

    def __init__(self, experiment: Experiment, attempts: Iterable[RunRow] = (), *, prices: Prices) -> None:
        """``attempts``: what was asked before, which counts too."""
        self._limits = {"max_calls": experiment.max_calls, "max_tokens": experiment.max_tokens}
        self._max_cost = experiment.max_cost
        self._prices = prices
        self._spent = dict.fromkeys(self._limits, 0)
        self._chat_cost = FREE
        self.cost = FREE
        """Of all that was added."""
        for row in attempts:
            self.add(row)

    def add(self, row: RunRow) -> None:
        """Count what one question paid."""
        self._spent["max_calls"] += row.chat_calls
        self._spent["max_tokens"] += row.tokens
        self.cost += cost_of_row(row, self._prices)
        self._chat_cost += self._cost_of_chat(row)

    @property
    def exhausted(self) -> str:
        """The limit that is reached, as "max_calls=100"; ``""`` while there is none."""
        for name, limit in self._limits.items():
            if limit is not None and self._spent[name] >= limit:
                return f"{name}={limit}"
        if self._max_cost is None:
            return ""
        if not self._chat_cost.is_whole:
            return f"max_cost={self._max_cost:g} (not to be watched: some calls have told no tokens)"
        return f"max_cost={self._max_cost:g}" if self.cost.known_usd >= self._max_cost else ""

    def _cost_of_chat(self, row: RunRow) -> Cost:
        if row.paid is not None:
            return self._prices.cost_of(usage for usage in row.paid if usage.kind == "chat")
        return UNKNOWN if row.chat_calls else FREE


def cost_of_row(row: RunRow, prices: Prices) -> Cost:
    """What one question has cost; unknown for rows that were written before rows said what they had paid."""
    return UNKNOWN if row.paid is None else prices.cost_of(row.paid)


def uncached_cost_of_row(row: RunRow, prices: Prices) -> Cost:
    """What one question would have cost if no call had come out of the cache."""
    return UNKNOWN if row.paid is None else prices.cost_of(usage.as_if_uncached() for usage in row.paid)


def refuse_unpriced(experiment: Experiment, settings: Settings, prices: Prices) -> None:
    """Do nothing if the experiment has no ``max_cost``, or all models that it names have a price.

    Embedding and rerank endpoints do not tell their tokens: their part of the money is not counted, only named unknown.

    Raises:
        SettingsError: ``max_cost`` cannot be watched; the message names each model without a price.
    """
    if experiment.max_cost is None:
        return
    unpriced = [(kind, spec) for kind, spec in _models_of(experiment, settings) if prices.of(spec, kind) is None]
    if unpriced:
        named = ", ".join(dict.fromkeys(f"{kind} model {without_secrets(spec)!r}" for kind, spec in unpriced))
        raise SettingsError(
            f"max_cost={experiment.max_cost:g} cannot be watched, since the price of the {named} is unknown. "
            f'Write it into {settings.home / FILE_NAME}, such as [{unpriced[0][0]}."MODEL"] and below it '
            "prompt = 0.5 and completion = 1.5 (dollars per million tokens), or leave out max_cost."
        )


def _models_of(experiment: Experiment, settings: Settings) -> Iterator[tuple[CallKind, str]]:
    yield "chat", settings.llm_spec
    if any(SYSTEMS[system].judges for system in experiment.systems):
        yield "chat", settings.judge_spec
    if not RETRIEVING.intersection(experiment.systems):
        return
    if settings.embeddings != "auto" and experiment.search_type != "sparse":
        yield "embedding", settings.embeddings
    reranker = (experiment.ranker_params or {}).get("model")
    if experiment.ranker_type == "model" and isinstance(reranker, str):
        yield "rerank", reranker
