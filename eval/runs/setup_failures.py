"""When a run stops since its endpoints can serve nothing."""

from __future__ import annotations

from ...modules.errors import ModelSetupError
from ..rows.store import RunRow

MIN_ASKED = 10
"""Fewer questions make no share."""


class SetupFailures:
    """Counts questions that failed by a ``ModelSetupError``, in a row or as a share of those asked."""

    def __init__(self, fail_after: float) -> None:
        """``fail_after``: from 1 on, a number of questions in a row; below 1, a share of the questions asked."""
        self._fail_after = fail_after
        self._asked = self._failed = self._in_a_row = 0
        self._reason = ""

    def add(self, row: RunRow) -> None:
        """Count a question that was asked; rows are added in the order in which they are finished."""
        self._asked += 1
        self._failed += row.setup_failed
        self._in_a_row = self._in_a_row + 1 if row.setup_failed else 0
        self._reason = row.error if row.setup_failed else self._reason

    @property
    def is_reached(self) -> bool:
        """Whether no further question is to be asked."""
        if self._fail_after >= 1:
            return self._in_a_row >= self._fail_after
        return self._asked >= MIN_ASKED and self._failed >= self._fail_after * self._asked

    def refuse(self) -> None:
        """Do nothing unless the limit is reached, or not a single question could be asked.

        Raises:
            ModelSetupError: With what the last of them had said.
        """
        if self.is_reached or 0 < self._failed == self._asked:
            raise ModelSetupError(
                f"Stopped: {self._failed} of {self._asked} questions could not be asked. The last one: {self._reason} "
                "Finished rows are kept; once that is mended, the same command asks the others and these again."
            )
