"""Parameters of OpenAI's chat completions that this server has no use for: refused by name, or ignored and named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..serving.errors import ApiError

IGNORED = "X-Judgetree-Ignored"
"""Header of an answer that names the parameters that had no effect."""
_OFFERS = frozenset({"tools", "functions"})
"""What a model may leave unused, so that an answer without it is allowed: Open WebUI offers tools with each chat."""
_NEUTRAL = frozenset({"user", "store"})
"""Parameters that say nothing of the answer, whatever their value."""
_NOT_IN_HEADERS = re.compile(r"[^\w.-]", re.ASCII)
_MOST_NAMED = 20
_LONGEST_NAME = 64


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A parameter that changes an answer, so that ignoring it would give another one than was asked for."""

    because: str
    neutral: tuple[object, ...] = ()
    """Values that ask for nothing, besides null."""


_ONE = "a question has one answer"
_NO_TOOLS = "models here call no tools of the client"
_NO_LOGPROBS = "log probabilities of an answer are not given"
_ONE_SAMPLING = "the sampling is set by temperature and seed alone"
_TEXT_ALONE = "answers are text"
REFUSED: Mapping[str, Refused] = {
    "n": Refused(because=_ONE, neutral=(1,)),
    "tool_choice": Refused(because=_NO_TOOLS, neutral=("none", "auto")),
    "function_call": Refused(because=_NO_TOOLS, neutral=("none", "auto")),
    "logprobs": Refused(because=_NO_LOGPROBS, neutral=(False,)),
    "top_logprobs": Refused(because=_NO_LOGPROBS, neutral=(0,)),
    "logit_bias": Refused(because=_ONE_SAMPLING, neutral=({},)),
    "top_p": Refused(because=_ONE_SAMPLING, neutral=(1,)),
    "presence_penalty": Refused(because=_ONE_SAMPLING, neutral=(0,)),
    "frequency_penalty": Refused(because=_ONE_SAMPLING, neutral=(0,)),
    "modalities": Refused(because=_TEXT_ALONE, neutral=(["text"],)),
    "audio": Refused(because=_TEXT_ALONE),
}
"""Parameters by name."""


def ignored_parameters(given: Mapping[str, object], *, lenient: bool) -> list[str]:
    """Return the names of the parameters that have no effect, in their order.

    Args:
        given: The parameters that the server does not read.
        lenient: Whether those that change an answer are ignored too.

    Raises:
        ApiError: HTTP 400: one changes an answer, and may not be ignored.
    """
    ignored = []
    for name, value in given.items():
        refused = REFUSED.get(name)
        is_empty = value is None or (name in _OFFERS and not value)
        if is_empty or name in _NEUTRAL or (refused and value in refused.neutral):
            continue
        if refused and not lenient:
            raise ApiError(400, f"Leave out {name}: {refused.because}.", param=name, code="unsupported_parameter")
        ignored.append(name)
    return ignored


def named_in_header(names: list[str]) -> str:
    """Return names as the value of a header.

    >>> named_in_header(["top_k", "a b"])
    'top_k, a?b'
    """
    return ", ".join(_NOT_IN_HEADERS.sub("?", name)[:_LONGEST_NAME] for name in names[:_MOST_NAMED])
