"""Every error that judgetree raises on purpose.

    JudgetreeError
    ├── UserError                 the caller can mend it; the command line exits 2 with the message alone
    │   ├── SettingsError         a setting, key or model name is missing or malformed
    │   ├── LoadingError          nothing readable at a path
    │   ├── CollectionError       the collection is missing, locked, or made by another embedder
    │   ├── SearchArgumentError   a retriever attribute that does not fit the collection or the search type
    │   ├── ThreadMismatch        a thread id that belongs to another question or other settings
    │   ├── UnknownThread         a thread id that was never written
    │   ├── CacheMiss             a replayed run asked something that no earlier run had paid for
    │   ├── ConversationBusy      a conversation is answering another question, which was not to be waited for
    │   ├── LoopReentryError      a sync call made from judgetree's own event loop
    │   └── DependencyError       an optional package that is not installed
    ├── ModelCallError            a model endpoint failed after the last attempt
    │   └── ModelSetupError       (also a UserError) it refused the key, the model's name or the request
    └── BudgetSpent               the tree's allowance of model calls is used up (caught inside the graphs)

A message says what failed, which value, what is allowed and what to do. Errors of other libraries are wrapped once,
where they are called, with ``raise … from``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

SETUP_STATUS = frozenset({400, 401, 403, 404, 405, 413, 415, 422})
"""HTTP statuses with which a model endpoint refuses a call for good: a ``ModelSetupError`` each."""


class JudgetreeError(Exception):
    """The root of the tree above."""


class UserError(JudgetreeError):
    """Something the caller can mend; shown without a traceback."""


class SettingsError(UserError):
    """A setting, key or model name is missing or malformed."""


class LoadingError(UserError):
    """Nothing readable stands at a path."""


class CollectionError(UserError):
    """A collection is missing, locked, or was made by another embedder."""


class SearchArgumentError(UserError):
    """A retriever attribute does not fit the collection or the search type."""


class ThreadMismatch(UserError):
    """A thread id already belongs to another question or to other settings."""


class UnknownThread(UserError):
    """A thread id that no checkpoint knows."""


class CacheMiss(UserError):
    """A replayed run asked a model something that no earlier run had asked."""


class ConversationBusy(UserError):
    """A conversation is answering another question, and that was not to be waited for."""


class LoopReentryError(UserError):
    """A blocking call was made from judgetree's own event loop, where it would wait for itself."""


class DependencyError(UserError):
    """An optional package is not installed."""


class ModelCallError(JudgetreeError):
    """A model endpoint failed after the last attempt; trying again later may help."""


class ModelSetupError(ModelCallError, UserError):
    """A model endpoint refused the key, the model's name or the request; trying again does not help."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        """``status`` is the HTTP status of the refusal; None where there was none."""
        super().__init__(message)
        self.status = status

    @property
    def refuses_all(self) -> bool:
        """Whether any other request would be too, for its key or its model; a 400 may be the prompt's own."""
        return self.status in (401, 403, 404)


class BudgetSpent(JudgetreeError):
    """The search tree's allowance of model calls is used up."""


@contextmanager
def ungrouped(kind: type[Exception]) -> Iterator[None]:
    """Around an ``asyncio.TaskGroup``: of a group of errors of a kind, the first is raised by itself."""
    try:
        yield
    except* kind as errors:
        raise _first(errors) from None


def _first(errors: BaseExceptionGroup[Exception]) -> Exception:
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
