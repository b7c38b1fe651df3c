"""What the model calls of scoring and recording cost, in the file ``payments.jsonl`` beside what they give."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ...modules.calls.record import NOTHING, Spend
from ...modules.errors import LoadingError
from ...modules.reading.plausible_numbers import RecordReader
from ...modules.reading.regular_files import MAX_DATA_BYTES, read_named
from .json_lines import append_line, cut_torn_end

FILE_NAME = "payments.jsonl"
_ADVICE = "Delete it; limits of calls, tokens and money then count from now on."


@dataclass(frozen=True, kw_only=True)
class Payment:
    """One attempt of a call: the newest line of an id counts."""

    id: str
    work: str
    """What the call is for, such as the digest of a scorer."""
    calls: int
    tokens: int
    usd: float
    unpriced: int = 0
    estimated: int = 0
    """1 for an attempt in flight, or one whose tokens the endpoint did not report."""


class Payments:
    """The payments of one folder: a line before each attempt, and one once its usage is known.

    So an attempt that was in flight when its process was killed counts by its estimate. One process writes at a time.
    """

    def __init__(self, folder: Path, works: Collection[str] = ("",)) -> None:
        """``works``: what the limits are for; payments for other work in the folder are none of theirs."""
        self._file = folder / FILE_NAME
        self._works = frozenset(works)
        self._reader: RecordReader[Payment] = RecordReader(Payment)

    def paid(self) -> Spend:
        """Cut a torn last line off, and return what the work has cost in earlier starts.

        Raises:
            LoadingError: A line is damaged.
        """
        if not self._file.exists():
            return NOTHING
        data = read_named(self._file, what="the payments in", advice=_ADVICE, max_bytes=MAX_DATA_BYTES)
        cut_torn_end(self._file)
        newest: dict[str, Payment] = {}
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n")[:-1], start=1):
            try:
                payment = self._reader.validate_json(line)
            except ValidationError as error:
                fault = error.errors()[0]["msg"]
                raise LoadingError(f"{self._file}, line {number} is damaged: {fault}. {_ADVICE}") from error
            newest[payment.id] = payment
        return sum((_spend(each) for each in newest.values() if each.work in self._works), NOTHING)

    def begin(self, work: str, expected: Spend) -> str:
        """Note an attempt before it is made, and return its id.

        Raises:
            WritingError: The disk is full, or the file cannot be written.
        """
        payment_id = uuid.uuid4().hex
        self._append(payment_id, work, expected)
        return payment_id

    def end(self, payment_id: str, work: str, actual: Spend) -> None:
        """Note what an attempt has cost; nothing if it was not made."""
        self._append(payment_id, work, actual)

    def _append(self, payment_id: str, work: str, spend: Spend) -> None:
        payment = Payment(
            id=payment_id,
            work=work,
            calls=spend.calls,
            tokens=spend.tokens,
            usd=spend.usd,
            unpriced=spend.unpriced,
            estimated=spend.estimated,
        )
        append_line(self._file, self._reader.dump_json(payment))


def _spend(payment: Payment) -> Spend:
    return Spend(
        calls=payment.calls,
        tokens=payment.tokens,
        usd=payment.usd,
        unpriced=payment.unpriced,
        estimated=payment.estimated,
    )
