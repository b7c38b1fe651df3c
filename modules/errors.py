"""The errors of judgetree, and the wording of validation errors.

    JudgetreeError
    ├── UserError                 the user can correct it; the command line prints the message and exits 2
    │   ├── SettingsError         a setting, key or model name is missing or malformed
    │   │   ├── ProxyFault        a proxy of the environment is malformed, down, or refuses
    │   │   ├── StoreFailure      the store of checkpoints, locks or keys did not answer, or refused a write
    │   │   │   └── LostParts     the store lacks parts of what it has saved
    │   │   ├── RequestIdTaken    the id of a request belongs to another question, history or options
    │   │   └── UnknownConversation  a conversation that does not exist
    │   ├── LoadingError          a path has nothing readable
    │   ├── CollectionError       the collection is missing, locked, or made by another embedder
    │   │   └── MilvusFailure     Milvus refused a call, or did not answer
    │   ├── SearchArgumentError   a retriever attribute that does not fit the collection or the search type
    │   ├── ThreadMismatch        a thread id that belongs to another question or other settings
    │   ├── UnknownThread         no checkpoint has the thread id
    │   ├── RunLimitReached       a batch run may make no further model call; its open questions can be resumed
    │   ├── CacheMiss             a replayed run needs a model call that is not in the cache
    │   ├── ConversationBusy      a conversation is answering another question, and the caller chose not to wait
    │   ├── NoRunningQuestion     a conversation has no running question that could be stopped
    │   ├── WritingError          a file could not be written: full disk, used-up quota, or missing rights
    │   ├── SessionError          a session was closed under a question, or is used in a forked process or at the exit
    │   ├── LoopReentryError      a sync call made from judgetree's own event loop
    │   └── DependencyError       an optional package is not installed
    ├── ModelCallError            a model endpoint failed after the last attempt
    │   ├── ModelSetupError       (also a UserError) it can serve no request: key, model, account or address are wrong
    │   ├── ModelRequestError     it refused one request for good; others may succeed
    │   └── NoQuestion            the writer of sub-questions has no other one for a chunk
    ├── QuestionInterrupted       a question waits for a person's answer, where none can be given
    ├── ThreadMoved               a thread was written by another process meanwhile (caught inside the graphs)
    └── BudgetSpent               a limit of the search tree is reached (caught inside the graphs)

A message says what failed, which value, what is allowed and what to do. Errors of other libraries are wrapped once,
where they are called, with ``raise … from``.
"""

from __future__ import annotations

import difflib
from abc import ABC
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pydantic import ValidationError

_SETUP_STATUS = frozenset({401, 402, 403, 404, 405, 407, 410})
"""HTTP statuses about the key, the account, the address or the model."""
_SETUP_CODES = frozenset(
    {"arrearage", "billing_hard_limit_reached", "billing_not_active", "insufficient_quota", "invalid_api_key"}
)
"""Error codes of DashScope and OpenAI with the same meaning behind an HTTP 400 or 429, in lower case."""
_WITH_VALUE = frozenset({"extra_forbidden", "missing", "value_error"})
"""Kinds of pydantic's faults that have no value, or name it themselves."""
_LATER_STATUS = frozenset({408, 409, 425, 429})
"""HTTP statuses from 400 to 499 after which the same request may succeed later."""


class JudgetreeError(Exception):
    """The base class of all errors."""


class UserError(JudgetreeError):
    """An error that the user can correct; shown without a traceback."""


class SettingsError(UserError):
    """A setting, key or model name is missing or malformed."""


class ProxyFault(SettingsError):
    """A proxy of the environment is malformed, cannot be reached, refuses, or stands before a foreign certificate."""

    def __init__(self, what: str, remedy: str = "", *, is_final: bool = False, status: int | None = None) -> None:
        """Create an error from ``what`` failed and the ``remedy``, both as clauses, or from a whole message.

        ``is_final`` says that the same request would fail again; ``status`` is the HTTP status of the proxy.
        """
        super().__init__(f"{what[0].upper()}{what[1:]}. To do: {remedy}." if remedy else what)
        self.what = what
        self.remedy = remedy
        self.is_final = is_final
        self.status = status


class StoreFailure(SettingsError):
    """The store of checkpoints, locks or keys did not answer, or refused a write."""


class LostParts(StoreFailure):
    """The store lacks parts of what it has saved; what is left can be deleted."""


class RequestIdTaken(SettingsError):
    """The id of a request belongs to an earlier one with another question, history or options."""


class UnknownConversation(SettingsError):
    """No conversation has the name."""


class LoadingError(UserError):
    """A file or folder has nothing that can be read."""


class CollectionError(UserError):
    """A collection is missing, locked, or was made by another embedder."""


class MilvusFailure(CollectionError):
    """Milvus refused a call, or did not answer."""


class SearchArgumentError(UserError):
    """A retriever attribute does not fit the collection or the search type."""


class ThreadMismatch(UserError):
    """A thread id already belongs to another question or to other settings."""


class UnknownThread(UserError):
    """No checkpoint has the thread id."""


class RunLimitReached(UserError):
    """A batch run has no model call left within its limits; the question that asked stays open and can be resumed."""


class CacheMiss(UserError):
    """A replayed run needs a model call that is not in the cache."""


class ConversationBusy(UserError):
    """A conversation is answering another question, and the caller chose not to wait."""


class WritingError(UserError):
    """A file could not be written: full disk, used-up quota, or missing rights."""


class SessionError(UserError):
    """A session or graph was closed under a question, is used in a forked process, or at the exit of Python."""


class LoopReentryError(UserError):
    """A blocking call was made from judgetree's own event loop, where it would wait for itself."""


class DependencyError(UserError):
    """An optional package is not installed."""


class ModelCallError(JudgetreeError):
    """A model endpoint failed after the last attempt; trying again later may help."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        """Create an error; ``status`` is the HTTP status of the last reply, None without one."""
        super().__init__(message)
        self.status = status


class ModelSetupError(ModelCallError, UserError):
    """A model endpoint can serve no request: its key, account, model or address is wrong."""


class ModelRequestError(ModelCallError):
    """A model endpoint refused one request for good, for example for its length; others may succeed."""


class NoQuestion(ModelCallError):
    """The writer of sub-questions has no other one for a chunk; its calls succeeded."""


LimitName = Literal["calls", "sub_runs", "tokens", "cost", "seconds", "stopped"]
"""A limit of a search tree; ``stopped`` is a stop from outside."""


class ThreadMoved(JudgetreeError):
    """A thread has a newer checkpoint than the one that a save has to follow."""


class BudgetSpent(JudgetreeError):
    """A limit of the search tree is reached."""

    def __init__(self, message: str, *, limit: LimitName = "calls") -> None:
        """Create an error; ``limit`` is the limit that is reached."""
        super().__init__(message)
        self.limit: LimitName = limit


class NoRunningQuestion(UserError):
    """A conversation has no running question, in this process, that could be stopped."""


class QuestionInterrupted(JudgetreeError):
    """A question waits for the answer to an interrupt; its thread stays open."""


class NoFailure(ABC):  # noqa: B024 - exceptions of other libraries are registered here
    """Any exception that ends a step without an error, such as an interrupt; handlers of all errors let it pass."""


def error_class_of(status: int | None, code: str = "") -> type[ModelCallError]:
    """Return the error class for an HTTP status of a model endpoint and the error code of its body, if any.

    ``status`` is None where there is none, as with a connection that broke.

    ``ModelSetupError`` and ``ModelRequestError`` are refusals for good; after a plain ``ModelCallError`` the same
    request may succeed.

    >>> error_class_of(400).__name__, error_class_of(429).__name__
    ('ModelRequestError', 'ModelCallError')
    >>> error_class_of(429, "insufficient_quota").__name__
    'ModelSetupError'
    """
    if status is not None and not 400 <= status < 500:
        return ModelCallError
    if status in _SETUP_STATUS or code.casefold() in _SETUP_CODES:
        return ModelSetupError
    if status is None:
        return ModelCallError
    return ModelCallError if status in _LATER_STATUS else ModelRequestError


@contextmanager
def ungrouped(kind: type[Exception]) -> Iterator[None]:
    """Raise the first error of an ``asyncio.TaskGroup`` by itself, if all are of one kind."""
    try:
        yield
    except* kind as errors:
        raise _first(errors) from None


def _first(errors: BaseExceptionGroup[Exception]) -> Exception:
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return a question after the allowed word that is nearest, behind a space; ``""`` if none is near.

    >>> did_you_mean("topkk", ["topk", "judge"])
    " Did you mean 'topk'?"
    """
    near = difflib.get_close_matches(word, list(allowed), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def faults_of(error: ValidationError, *, whole: str = "", shown: Callable[[object], str] | None = None) -> list[str]:
    """Return each fault after its place, as in ``"facts.0.quote: Field required"``, in the order of the fields.

    Args:
        error: The error of pydantic.
        whole: The place of a fault of the value as a whole.
        shown: Shows the value of a fault, for messages that may have it; None leaves values out.
    """
    faults = []
    for fault in error.errors(include_url=False, include_input=shown is not None, include_context=False):
        place = ".".join(map(str, fault["loc"])) or whole
        said = reason_of(fault["msg"].removeprefix("Value error, "))
        if shown is not None and fault["type"] not in _WITH_VALUE:
            said = f"{said} (it is {shown(fault['input'])})"
            said += ": write it in quotes" if _is_number_for_text(fault["type"], fault["input"]) else ""
        faults.append(f"{place}: {said}" if place else said)
    return faults


def _is_number_for_text(kind: str, value: object) -> bool:
    return kind == "string_type" and isinstance(value, int | float)


def reason_of(error: BaseException | str) -> str:
    """Return what an error says, to stand before a full stop: without its own.

    >>> f"The file cannot be read: {reason_of('It is empty.')}."
    'The file cannot be read: It is empty.'
    """
    return str(error).removesuffix(".")


@contextmanager
def needs_extra(extra: str, *, what: str = "This") -> Iterator[None]:
    """Raise a missing package inside the block as an error that names its extra; ``what`` starts the message.

    Raises:
        DependencyError: A package is not installed. A missing module of judgetree itself stays a
            ``ModuleNotFoundError``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == __name__.partition(".")[0]:
            raise
        raise DependencyError(
            f"{what} needs the package {error.name}. Run: pip install 'judgetree[{extra}]'"
        ) from error
