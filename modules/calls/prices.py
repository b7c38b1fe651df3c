"""The cost of model calls: a table of prices per model, and sums that say whether a part is unknown.

The table is ``prices.toml`` beside this file; a ``prices.toml`` in the settings' home adds to it and overrides it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import SettingsError, faults_of, reason_of
from ..reading.regular_files import read_named_text
from .record import INTERRUPTED, CallKind, CallRecord, Spend, counted_tokens

FILE_NAME = "prices.toml"
LOCAL = "local:"
"""Prefix of the names of models that run in this process, which cost nothing."""
SIMULATED = "simulated"
"""Model of the calls that a simulated judge books and does not make; it has no price."""

_SERVICE = re.compile(r"^(?:openai:|dashscope:|https?://[^#]*#)")
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_MILLION = 1_000_000


class Price(BaseModel):
    """The price of one model in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: float = Field(ge=0, allow_inf_nan=False)
    completion: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    source: str = ""
    """Publication of the price, such as a URL."""
    date: dt.date | None = None
    """Day on which the price was read."""

    def usd_of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the US dollars of so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION


class _ChatPrice(Price):
    completion: float = Field(ge=0, allow_inf_nan=False)  # not 0 for one that forgets it


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")

    chat: dict[str, _ChatPrice] = Field(default_factory=dict)
    embedding: dict[str, Price] = Field(default_factory=dict)
    rerank: dict[str, Price] = Field(default_factory=dict)

    def by_kind(self) -> dict[CallKind, Mapping[str, Price]]:
        return {"chat": self.chat, "embedding": self.embedding, "rerank": self.rerank}


@dataclass(frozen=True, kw_only=True)
class ModelUsage:
    """The usage of one model, without prices: these are applied when it is shown."""

    model: str
    """Name in call records; ``local:…`` for a model that runs in this process."""
    kind: CallKind
    calls: int = 0
    """Calls that were made: failed ones included, cached ones not."""
    uncounted_calls: int = 0
    """Answered calls among ``calls`` whose tokens the endpoint did not report."""
    estimated_calls: int = 0
    """Calls among ``calls`` with estimated tokens, since the endpoint reported none."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Sum of the calls' own times, which overlap where calls run at once."""
    cached_calls: int = 0
    """Calls that the cache answered; their tokens and seconds are those that were once paid."""
    cached_estimated_calls: int = 0
    """Calls among ``cached_calls`` with estimated tokens."""
    cached_prompt_tokens: int = 0
    cached_completion_tokens: int = 0
    cached_seconds: float = 0.0
    interrupted_calls: int = 0
    """Calls among ``calls`` whose process ended before their reply was saved: made again, and paid for twice."""
    interrupted_prompt_tokens: int = 0
    interrupted_completion_tokens: int = 0
    unreported_prompt_tokens: int = 0
    """Tokens that the prompts of ``calls`` have at least beyond ``prompt_tokens``; limits count them."""
    unreported_completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens that were paid for."""
        return self.prompt_tokens + self.completion_tokens

    def as_counted(self) -> ModelUsage:
        """Return the usage as limits count it."""
        return replace(
            self,
            prompt_tokens=self.prompt_tokens + self.unreported_prompt_tokens,
            completion_tokens=self.completion_tokens + self.unreported_completion_tokens,
        )

    def as_unpaid(self) -> ModelUsage:
        """Return the usage if none of its calls had been made: as one that only ``as_if_uncached`` counts."""
        return ModelUsage(
            model=self.model,
            kind=self.kind,
            cached_calls=self.calls,
            cached_estimated_calls=self.estimated_calls,
            cached_prompt_tokens=self.prompt_tokens,
            cached_completion_tokens=self.completion_tokens,
            cached_seconds=self.seconds,
        )

    def as_if_uncached(self) -> ModelUsage:
        """Return the usage if every call had been paid for once: no cache, no interrupted calls."""
        cut_off = self.interrupted_calls
        return ModelUsage(
            model=self.model,
            kind=self.kind,
            calls=self.calls + self.cached_calls - cut_off,
            uncounted_calls=self.uncounted_calls,
            estimated_calls=self.estimated_calls + self.cached_estimated_calls - cut_off,
            prompt_tokens=self.prompt_tokens + self.cached_prompt_tokens - self.interrupted_prompt_tokens,
            completion_tokens=self.completion_tokens
            + self.cached_completion_tokens
            - self.interrupted_completion_tokens,
            seconds=self.seconds + self.cached_seconds,
        )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A sum of money of which a part may be unknown."""

    known_usd: float = 0.0
    """The known part in US dollars; a lower bound of the sum."""
    is_whole: bool = True
    """True if no part is unknown."""
    is_estimated: bool = False
    """True if tokens are estimates, since an endpoint reported none."""

    @property
    def usd(self) -> float | None:
        """The sum in US dollars; None if a part is unknown."""
        return self.known_usd if self.is_whole else None

    @classmethod
    def of(cls, spend: Spend) -> Cost:
        """Return the money of a sum of calls."""
        return cls(known_usd=spend.usd, is_whole=not spend.unpriced, is_estimated=spend.estimated > 0)

    def to_document(self) -> dict[str, object]:
        """Return it as entries of a JSON document; ``cost_usd`` is None if a part is unknown."""
        return {"cost_usd": self.usd, "cost_known_usd": self.known_usd, "cost_is_estimated": self.is_estimated}

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            known_usd=self.known_usd + other.known_usd,
            is_whole=self.is_whole and other.is_whole,
            is_estimated=self.is_estimated or other.is_estimated,
        )

    def __str__(self) -> str:
        amount = f"about {dollars(self.known_usd)}" if self.is_estimated else dollars(self.known_usd)
        if self.is_whole:
            return amount
        return f"at least {amount}" if self.known_usd else "unknown"


FREE = Cost()
UNKNOWN = Cost(is_whole=False)


def dollars(usd: float) -> str:
    """Return an amount with cents, or with as many digits as show two that are not 0.

    >>> dollars(12.3), dollars(0.000123), dollars(0)
    ('$12.30', '$0.00012', '$0.00')
    """
    digits = 2 if usd == 0 or usd >= 1 else max(2, 1 - math.floor(math.log10(abs(usd))))
    return f"${usd:.{digits}f}"


class Prices:
    """Prices by kind of call and name of the model."""

    def __init__(self, by_kind: Mapping[CallKind, Mapping[str, Price]]) -> None:
        self._by_kind = by_kind

    def with_free(self, models: Iterable[str]) -> Prices:
        """Return the prices with these chat models free, since they run in this process."""
        free = dict.fromkeys(models, Price(prompt=0.0))
        return Prices({**self._by_kind, "chat": {**self._by_kind.get("chat", {}), **free}})

    def of(self, model: str, kind: CallKind = "chat") -> Price | None:
        """Return the price of a model; None if it is unknown.

        The service that a spec names (``dashscope:``, ``http://host/v1#``) is left aside. Then the name is looked up as
        it is, and if it has no entry, without a date at its end: ``gpt-4o-mini-2024-07-18`` costs what ``gpt-4o-mini``
        does unless it has an entry of its own. A model in this process (``local:…``) is free.
        """
        if model.startswith(LOCAL):
            return Price(prompt=0.0)
        table, name = self._by_kind.get(kind, {}), _SERVICE.sub("", model)
        return table.get(name) or table.get(_DATED.sub("", name))

    def cost_of(self, usage: Iterable[ModelUsage]) -> Cost:
        """Return the money paid; unknown for calls without a price, and for uncounted calls of models that cost."""
        return sum((self._cost(one) for one in usage), FREE)

    def spend_of(self, record: CallRecord) -> Spend:
        """Return what one call used; nothing for one that the cache answered. Its time is not counted."""
        if record["cached"]:
            return Spend()
        is_chat = record["kind"] == "chat"
        price = self.of(record["model"], record["kind"])
        tokens = counted_tokens(record)
        usd = 0.0 if price is None else price.usd_of(*tokens)
        is_free = price is not None and price.prompt == price.completion == 0
        is_uncounted = not record["error"] and record["prompt_tokens"] == 0
        return Spend(
            calls=int(is_chat),
            tokens=sum(tokens) if is_chat else 0,
            usd=usd,
            unpriced=int(price is None or (is_uncounted and not is_free)),
            estimated=int(record["estimated"] and price is not None and not is_free),
        )

    def _cost(self, usage: ModelUsage) -> Cost:
        price = self.of(usage.model, usage.kind)
        if price is None:
            return Cost(is_whole=usage.calls == 0)
        usd = price.usd_of(usage.prompt_tokens, usage.completion_tokens)
        is_free = price.prompt == price.completion == 0
        return Cost(
            known_usd=usd,
            is_whole=is_free or usage.uncounted_calls == 0,
            is_estimated=not is_free and usage.estimated_calls > 0,
        )


def load_prices(home: Path | None = None) -> Prices:
    """Return the packaged prices, overridden by the entries of ``prices.toml`` in ``home`` if there is one.

    Raises:
        SettingsError: ``prices.toml`` cannot be read, or entries are malformed; the message names each fault.
    """
    table = _read(resources.files(__package__).joinpath(FILE_NAME).read_text(encoding="utf-8"), where=FILE_NAME)
    file = home / FILE_NAME if home else None
    if file is None or not file.exists():
        return Prices(table)
    text = read_named_text(file, what="the prices in", advice="Give a TOML file in UTF-8.", error=SettingsError)
    own = _read(text, where=str(file))
    return Prices({kind: {**prices, **own[kind]} for kind, prices in table.items()})


_UNREPORTED = ("unreported_prompt_tokens", "unreported_completion_tokens")


def usage_by_model(records: Iterable[CallRecord]) -> tuple[ModelUsage, ...]:
    """Sum call records for each kind and model, in order of first use."""
    sums: dict[tuple[str, CallKind], ModelUsage] = {}
    for record in records:
        key = (record["model"], record["kind"])
        sums[key] = _plus(sums.get(key) or ModelUsage(model=key[0], kind=key[1]), record)
    return tuple(sums.values())


def _plus(usage: ModelUsage, record: CallRecord) -> ModelUsage:
    counts: dict[str, float] = {
        "calls": 1,
        "estimated_calls": record["estimated"],
        "prompt_tokens": record["prompt_tokens"],
        "completion_tokens": record["completion_tokens"],
        "seconds": record["seconds"],
    }
    if record["cached"]:
        added = {f"cached_{name}": count for name, count in counts.items()}
    else:
        # A prompt has at least one token, so 0 means unreported; a failed call is not billed.
        added = counts | {"uncounted_calls": not record["error"] and record["prompt_tokens"] == 0}
        added |= {name: record[name] for name in _UNREPORTED if name in record}  # type: ignore[literal-required]
        if record["error"] == INTERRUPTED:
            names = ("calls", "prompt_tokens", "completion_tokens")
            added |= {f"interrupted_{name}": counts[name] for name in names}
    return replace(usage, **{name: round(getattr(usage, name) + count, 4) for name, count in added.items()})


def _read(text: str, *, where: str) -> dict[CallKind, Mapping[str, Price]]:
    try:
        return _Table.model_validate(tomllib.loads(text)).by_kind()
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{where} is not valid TOML: {reason_of(error)}. {_FORM}") from error
    except ValidationError as error:
        raise SettingsError(f"{where} is not usable: {'; '.join(faults_of(error))}. {_FORM}") from error


_FORM = 'Write [chat."MODEL"] (or embedding, rerank) and below it prompt and completion in dollars per million tokens.'
