"""Exit statuses, and messages for the errors behind them.

0    done; a refusal is an answer
1    the question failed, or something unexpected happened
2    user error
130  Ctrl-C
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence

from ...modules.errors import JudgetreeError, UnknownThread, UserError
from ...modules.redaction import starred
from ...modules.storage.write_errors import is_full_disk, writing_error
from .terminal import say

OK, FAILED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130


def report(error: BaseException, *, debug: bool, secrets_of: Callable[[], Sequence[str]] = tuple) -> int:
    """Show the error that ended the command, with its traceback under ``debug``; returns the exit status.

    The secrets are starred out, in tracebacks too; an exit, as after ``--help``, reads none.
    """
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    secrets = secrets_of()
    if debug:
        sys.stderr.write(starred("".join(traceback.format_exception(error)), secrets))
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    message, status = explain(error)
    say(starred(message, secrets), style="red")
    return status


def explain(error: BaseException) -> tuple[str, int]:
    """Return the message for the user, and the exit status."""
    if isinstance(error, UserError):
        remedy = " `judgetree threads` lists the threads." if isinstance(error, UnknownThread) else ""
        return f"{error}{remedy}", USER_ERROR
    if isinstance(error, JudgetreeError):
        return str(error), FAILED
    if isinstance(error, OSError) and is_full_disk(error):
        return str(writing_error(error.filename or "The output", error)), FAILED
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be used: {error.strerror}. Check the path and its permissions.", USER_ERROR
    said = " ".join(str(error).split())[:300]
    return f"Unexpected {type(error).__name__}: {said}. Run `judgetree --debug …` for the traceback.", FAILED
