"""Keys that a request may have otherwise than the server, made from those of a question (``Key.in_requests``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

from annotated_types import Le
from pydantic import BaseModel, ConfigDict, Field, create_model

from ....graphs.config.limits import Limits
from ....graphs.config.rag_config import RagConfig
from ....graphs.search.policies.registry import POLICIES
from ....modules.config.config import Key, typed_as
from .errors import ApiError

Body = TypeVar("Body", bound=BaseModel)
_MOST: dict[str, int] = {"topk": 100}
"""Most of a key that costs a server more than the limits of a question bound."""
_MOST_OF_ALL = 1_000_000_000
_MOST_CHARS = 200


def with_keys(names: Iterable[str]) -> Callable[[type[Body]], type[Body]]:
    """Give a body a field for each key, of its type and bounds; what is missing is as the server has it."""

    def wrap(body: type[Body]) -> type[Body]:
        fields: dict[str, Any] = {name: _field(name) for name in names}
        return create_model(body.__name__, __base__=body, __module__=body.__module__, __doc__=body.__doc__, **fields)

    return wrap


def _field(name: str) -> tuple[object, object]:
    known, kind = RagConfig.model_fields[name], typed_as(RagConfig.model_fields[name].annotation)
    bounds = [each for each in known.metadata if not isinstance(each, Key)]
    if kind in (int, float) and not any(isinstance(each, Le) for each in bounds):
        bounds.append(Le(_MOST.get(name, _MOST_OF_ALL)))
    if kind is str:
        bounds.append(Field(max_length=_MOST_CHARS))
    bounded: Any = known.annotation
    for each in bounds:
        bounded = Annotated[bounded, each]
    meaning = " ".join((known.description or "").split())
    own = " A request names one that judgetree has, without parameters." if RagConfig.key(name).is_part else ""
    return bounded | None, Field(default=None, description=f"{meaning}{own}")


_ALLOWED = RagConfig.keys_with(in_requests=True)
_LIMITS = tuple(name for name in _ALLOWED if name in Limits.model_fields)


@with_keys(_LIMITS)
class QuestionLimits(BaseModel):
    """Limits of one question, none of which may exceed the server's; what is missing is as the server has it."""

    model_config = ConfigDict(extra="forbid")

    def within(self, most: Limits) -> dict[str, object]:
        """Return the limits that are given.

        Raises:
            ApiError: HTTP 400: one exceeds the server's.
        """
        given: dict[str, Any] = self.model_dump(exclude_none=True)
        for name, value in given.items():
            allowed = getattr(most, name)
            if allowed is not None and value > allowed:
                raise ApiError(
                    400, f"{name}={value} is not allowed: this server has {allowed}.", param=f"limits.{name}"
                )
        return given


@with_keys(name for name in _ALLOWED if name not in _LIMITS)
class QuestionKeys(BaseModel):
    """What one question has otherwise than the server."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    limits: QuestionLimits = Field(default_factory=QuestionLimits)

    def keys(self, most: Limits) -> dict[str, object]:
        """Return what the question has otherwise than the server, whose limits are ``most``.

        Raises:
            ApiError: HTTP 400: a limit exceeds the server's, or there is no such policy.
        """
        names = {name for name in _ALLOWED if name not in _LIMITS}
        given: dict[str, object] = self.model_dump(include=names, exclude_none=True)
        policy = given.get("policy")
        if policy is not None and policy not in POLICIES:
            raise ApiError(400, f"There is no policy {policy!r}. Allowed: {', '.join(POLICIES)}.", param="policy")
        return given | self.limits.within(most)
