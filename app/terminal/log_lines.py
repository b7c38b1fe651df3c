"""The log on standard error, beside what commands redraw there."""

from __future__ import annotations

import logging

from .terminal import say


class LogLines(logging.Handler):
    """Prints records above the bars and lines that are redrawn; a stream handler would write into them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        try:
            say(self.format(record))
        except Exception:  # noqa: BLE001 - what is logged fails no command, as with all handlers
            self.handleError(record)
