"""Every error that judgetree raises on purpose, and what others find wrong with a value, in words.

    JudgetreeError
    ├── UserError                 the caller can mend it; the command line exits 2 with the message alone
    │   ├── SettingsError         a setting, key or model name is missing or malformed
    │   ├── LoadingError          nothing readable at a path
    │   ├── CollectionError       the collection is missing, locked, or made by another embedder
    │   │   └── MilvusFailure     Milvus refused a call, or did not answer
    │   ├── SearchArgumentError   a retriever attribute that does not fit the collection or the search type
    │   ├── ThreadMismatch        a thread id that belongs to another question or other settings
    │   ├── UnknownThread         a thread id that was never written
    │   ├── RunLimitReached       a batch run may make no further model call; its open questions can be resumed
    │   ├── CacheMiss             a replayed run asked something that no earlier run had paid for
    │   ├── ConversationBusy      a conversation is answering another question, which was not to be waited for
    │   ├── WritingError          the disk is full, its quota is used up, or it takes no file
    │   ├── SessionError          a session was closed under a question, or is used in a forked process
    │   ├── LoopReentryError      a sync call made from judgetree's own event loop
    │   └── DependencyError       an optional package that is not installed
    ├── ModelCallError            a model endpoint failed after the last attempt
    │   ├── ModelSetupError       (also a UserError) it can serve no request: key, model, account or address are wrong
    │   └── ModelRequestError     it refused this one request for good; others may be answered
    └── BudgetSpent               the tree's allowance of model calls is used up (caught inside the graphs)

A message says what failed, which value, what is allowed and what to do. Errors of other libraries are wrapped once,
where they are called, with ``raise … from``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

_SETUP_STATUS = frozenset({401, 402, 403, 404, 405, 407, 410})
"""HTTP statuses about the key, the account, the address or the model, whatever was asked."""
_SETUP_CODES = frozenset(
    {"arrearage", "billing_hard_limit_reached", "billing_not_active", "insufficient_quota", "invalid_api_key"}
)
"""Error codes that say the same behind an HTTP 400 or 429: DashScope's and OpenAI's, in lower case."""
_LATER_STATUS = frozenset({408, 409, 425, 429})
"""HTTP statuses of the 400s with which the same request may succeed later."""


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


class MilvusFailure(CollectionError):
    """Milvus refused a call, or did not answer."""


class SearchArgumentError(UserError):
    """A retriever attribute does not fit the collection or the search type."""


class ThreadMismatch(UserError):
    """A thread id already belongs to another question or to other settings."""


class UnknownThread(UserError):
    """A thread id that no checkpoint knows."""


class RunLimitReached(UserError):
    """A batch run has no model call left within its limits; the question that asked stays open and can be resumed."""


class CacheMiss(UserError):
    """A replayed run asked a model something that no earlier run had asked."""


class ConversationBusy(UserError):
    """A conversation is answering another question, and that was not to be waited for."""


class WritingError(UserError):
    """A file could not be written: the disk is full, a quota is used up, or the file may not be written."""


class SessionError(UserError):
    """A session or graph was closed while it ran a question, or is used in a process forked from its own."""


class LoopReentryError(UserError):
    """A blocking call was made from judgetree's own event loop, where it would wait for itself."""


class DependencyError(UserError):
    """An optional package is not installed."""


class ModelCallError(JudgetreeError):
    """A model endpoint failed after the last attempt; trying again later may help."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        """``status`` is the HTTP status of the last reply; None where there was none."""
        super().__init__(message)
        self.status = status


class ModelSetupError(ModelCallError, UserError):
    """A model endpoint can serve no request at all: its key, account, model or address must be mended first."""


class ModelRequestError(ModelCallError):
    """A model endpoint refused one request for good, such as for its length or content; others may be answered."""


class BudgetSpent(JudgetreeError):
    """The search tree's allowance of model calls is used up."""


def error_class_of(status: int | None, code: str = "") -> type[ModelCallError]:
    """What an HTTP status of a model endpoint means, with the error's own code where it has one.

    ``ModelSetupError`` and ``ModelRequestError`` are refusals for good; after a plain ``ModelCallError`` the same
    request may succeed.

    >>> error_class_of(400).__name__, error_class_of(429).__name__
    ('ModelRequestError', 'ModelCallError')
    >>> error_class_of(429, "insufficient_quota").__name__
    'ModelSetupError'
    """
    if status is None or not 400 <= status < 500:
        return ModelCallError
    if status in _SETUP_STATUS or code.casefold() in _SETUP_CODES:
        return ModelSetupError
    return ModelCallError if status in _LATER_STATUS else ModelRequestError


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


def faults_of(error: ValidationError, *, whole: str = "") -> list[str]:
    """Return each fault behind its place, such as ``"facts.0.quote: Field required"``, in the order of the fields.

    ``whole`` is the place of a fault that belongs to no single field.
    """
    return [
        f"{'.'.join(map(str, fault['loc'])) or whole}: {fault['msg'].removeprefix('Value error, ')}"
        for fault in error.errors(include_url=False, include_input=False, include_context=False)
    ]


@contextmanager
def needs_extra(extra: str, *, what: str = "This") -> Iterator[None]:
    """Around an import: what is missing is told with the extra that brings it. ``what`` begins the message.

    Raises:
        DependencyError: A package is not installed. Modules of judgetree itself belong to no extra: one that is
            missing stays a ``ModuleNotFoundError``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == __name__.partition(".")[0]:
            raise
        raise DependencyError(
            f"{what} needs the package {error.name}. Run: pip install 'judgetree[{extra}]'"
        ) from error
