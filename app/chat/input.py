"""Where the lines of a chat come from: somebody who types in a terminal, or a pipe."""

from __future__ import annotations

import io
import sys
from contextlib import suppress

from ..terminal.terminal import say


class ChatInput:
    """Lines of standard input, one after the other; a prompt is shown only to somebody who types."""

    def __init__(self) -> None:
        self.is_typed = sys.stdin.isatty()
        if self.is_typed:
            with suppress(ImportError):  # not on Windows
                import readline  # noqa: F401 - gives ``input`` editing and a history
        elif isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8-sig", errors="replace")

    def next_line(self, prompt: str) -> str | None:
        """The next line without its end; None at the end of the input, and at Ctrl-C of somebody who types."""
        if not self.is_typed:
            line = sys.stdin.readline()
            return line.rstrip("\r\n") if line else None
        try:
            typed = input(self._shown(prompt))
        except (EOFError, KeyboardInterrupt):
            say("")
            return None
        # What a terminal sends in another encoding comes as lone surrogates, which no request can hold.
        return typed.encode(errors="replace").decode()

    def _shown(self, prompt: str) -> str:
        """The prompt; on standard error where answers go down a pipe."""
        if sys.stdout.isatty():
            return prompt
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return ""
