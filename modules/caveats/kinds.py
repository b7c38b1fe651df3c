"""The kinds of caveats on a model's reply, with the words for people. Columns, reports and pages iterate over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

CaveatKind = Literal["prompt_cut", "prompt_shortened", "reply_cut", "filtered", "declined", "only_thinking"]
CAVEAT_KINDS: tuple[CaveatKind, ...] = get_args(CaveatKind)


@dataclass(frozen=True, kw_only=True)
class Caveat:
    """The words for one kind."""

    noun: str
    """What is counted: a singular whose plural ends in "s" or "ies"."""
    sentence: str
    """What happened."""
    remedy: str
    """What to do about it."""


CAVEATS: Mapping[CaveatKind, Caveat] = {
    "prompt_cut": Caveat(
        noun="cut prompt",
        sentence="The server cut the prompt without saying so: the model read a part of what it was sent.",
        remedy="Give the server a longer context (Ollama: num_ctx or OLLAMA_CONTEXT_LENGTH, llama.cpp: --ctx-size, "
        "vLLM: --max-model-len), show fewer or shorter chunks, or set JUDGETREE_LLM_MAX_TOKENS to what it takes.",
    ),
    "prompt_shortened": Caveat(
        noun="shortened prompt",
        sentence="The prompt was longer than JUDGETREE_LLM_MAX_TOKENS: the middle of its longest text was left out.",
        remedy="Raise JUDGETREE_LLM_MAX_TOKENS if the model takes more, or show fewer or shorter chunks.",
    ),
    "reply_cut": Caveat(
        noun="cut-off reply",
        sentence="The endpoint ended the reply before the model did: its end is missing.",
        remedy="Allow longer replies at the server, or switch the thinking off, which counts towards them.",
    ),
    "filtered": Caveat(
        noun="filtered reply",
        sentence="A content filter of the endpoint ended the reply.",
        remedy="Loosen the filter of the endpoint, or ask another model.",
    ),
    "declined": Caveat(
        noun="declined reply",
        sentence="The model declined to answer, and gave a reason in place of a reply.",
        remedy="Read the reason; ask in other words, or ask another model.",
    ),
    "only_thinking": Caveat(
        noun="thinking-only reply",
        sentence="The reply was thinking alone: the answer was read out of it.",
        remedy="Switch the thinking off (--no-thinking), or set the reasoning parser of the server to the model's.",
    ),
}
"""The words for each kind, in the order in which kinds are listed."""

Caveats = Mapping[CaveatKind, int]
"""Count of each kind that happened, 1 or more; empty where replies are as they look."""


def counted(kinds: Iterable[CaveatKind]) -> dict[CaveatKind, int]:
    """Count kinds, in the order of ``CAVEAT_KINDS``.

    >>> counted(["filtered", "prompt_cut", "filtered"])
    {'prompt_cut': 1, 'filtered': 2}
    """
    counts = Counter(kinds)
    return {kind: counts[kind] for kind in CAVEAT_KINDS if counts[kind]}
