"""Payments of earlier starts: counted by their newest lines, those in flight at a kill by estimate."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.evaluation.rows.payments import FILE_NAME, Payments
from judgetree.modules.calls.record import NOTHING, Spend
from judgetree.modules.errors import LoadingError

CALL = Spend(calls=1, tokens=300, usd=0.3, estimated=1)


def test_an_attempt_counts_as_expected_until_it_has_ended(tmp_path: Path) -> None:
    payments = Payments(tmp_path)
    assert payments.paid() == NOTHING
    first, second, third = (payments.begin("", CALL) for _ in range(3))
    payments.end(first, "", Spend(calls=1, tokens=120, usd=0.12))
    payments.end(second, "", NOTHING)
    assert third
    assert Payments(tmp_path).paid() == Spend(calls=2, tokens=420, usd=0.42, estimated=1)


def test_other_work_of_the_folder_is_paid_by_its_own_limits(tmp_path: Path) -> None:
    payments = Payments(tmp_path, {"a", "b"})
    for work in ("a", "b", "c"):
        payments.begin(work, CALL)
    assert payments.paid().calls == 2


def test_a_line_that_a_kill_has_torn_is_cut_off_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    payments = Payments(tmp_path)
    payments.begin("", CALL)
    file = tmp_path / FILE_NAME
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:20])
    assert payments.paid().calls == 1
    assert file.read_bytes() == whole
    file.write_bytes(whole + b'{"id": "x", "work": "", "calls": -1, "tokens": 1, "usd": 0.0}\n')
    with pytest.raises(LoadingError, match=r"payments\.jsonl, line 2 is damaged"):
        payments.paid()
