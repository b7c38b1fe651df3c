"""Lines that a user types, or that come through a pipe."""

from __future__ import annotations

import io
import sys
from contextlib import suppress

from .terminal import say


class TypedLines:
    """Lines of standard input; the prompt is shown only in a terminal."""

    def __init__(self) -> None:
        self.is_typed = sys.stdin.isatty()
        if self.is_typed:
            with suppress(ImportError):  # not on Windows
                import readline  # noqa: F401 - gives ``input`` editing and a history
        elif isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8-sig", errors="replace")

    def next_line(self, prompt: str) -> str | None:
        """Return the next line without its end; None at the end of the input, or at Ctrl-C in a terminal."""
        if not self.is_typed:
            line = sys.stdin.readline()
            return line.rstrip("\r\n") if line else None
        try:
            typed = input(self._shown(prompt))
        except (EOFError, KeyboardInterrupt):
            say("")
            return None
        # Input in another encoding contains lone surrogates, which no request can contain.
        return typed.encode(errors="replace").decode()

    def _shown(self, prompt: str) -> str:
        """Show the prompt; on standard error if answers go to a pipe."""
        if sys.stdout.isatty():
            return prompt
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return ""
