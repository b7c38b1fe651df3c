"""Money of a saved turn, by the prices of today."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from ..calls.prices import UNKNOWN, Cost, ModelUsage, Prices, usage_by_model
from ..calls.record import CallRecord
from .turns import QaPair, UsedModel


def used_models(records: Iterable[CallRecord]) -> list[UsedModel]:
    """Sum call records by model, as a turn keeps them."""
    return [cast(UsedModel, vars(each).copy()) for each in usage_by_model(records)]


def cost_of_turn(turn: QaPair, prices: Prices) -> Cost:
    """Return the money paid for all calls of a turn, search included; unknown for turns of earlier versions."""
    models = turn.get("models")
    return UNKNOWN if models is None else prices.cost_of(ModelUsage(**each) for each in models)
