"""What a run directory has paid so far: for its rows, and for questions without one, which were interrupted."""

from __future__ import annotations

from ...graphs.threads.checkpoints import is_postgres, open_call_journal
from ...modules.background_loop import background_loop
from ...modules.calls.journal import JournaledCall
from ...modules.calls.prices import Prices
from ...modules.calls.record import Spend
from ...modules.settings import Settings
from ..rows.store import RunStore
from ..runs.asking import checkpoints_of
from ..runs.limits import NO_LIMITS, Spending


def paid_in(store: RunStore, settings: Settings, prices: Prices) -> Spend:
    """Return calls, tokens and money of all starts of a run; files of the run are read, no model is called.

    In PostgreSQL, which other runs share, questions without a row are not counted.

    Raises:
        LoadingError: The rows are damaged.
    """
    spending = Spending(NO_LIMITS, store.read_attempts(), prices=prices)
    address = checkpoints_of(store, settings)
    if not is_postgres(address):
        spending.recover(background_loop().run(_booked_in(address)))
    return spending.spent


async def _booked_in(address: str) -> list[JournaledCall]:
    async with open_call_journal(address) as journal:
        return [] if journal is None else await journal.booked_calls()
