"""Prompts of the systems with calls of their own between two searches, by system, and versions for fingerprints."""

from __future__ import annotations

from collections.abc import Mapping

from ..calls.messages import version_of_prompts
from ..calls.prompts import PromptGroup
from .multistep_prompts import (
    DRAFT_PROMPT,
    FOLLOW_UP_PROMPT,
    REACT_PROMPT,
    REACT_TOOLS_PROMPT,
    REWRITE_PROMPT,
    THOUGHT_PROMPT,
    Observed,
    draft_messages,
    follow_up_messages,
    react_messages,
    rewrite_messages,
    thought_messages,
)
from .tagged_prompts import SEARCH_R1_PROMPT, search_r1_messages

_FIRST = Observed(query="{query}", passages="{context}")
_NEXT = Observed(query="{next_query}", passages="", thought="{thought}")

STEP_PROMPTS: Mapping[str, PromptGroup] = {
    "ircot": PromptGroup(
        prompts=(THOUGHT_PROMPT,),
        version=version_of_prompts(
            thought_messages("{query}", "{context}", []), thought_messages("{query}", "{context}", ["{thought}"])
        ),
    ),
    "iter_retgen": PromptGroup(
        prompts=(DRAFT_PROMPT,), version=version_of_prompts(draft_messages("{query}", "{context}"))
    ),
    "self_ask": PromptGroup(
        prompts=(FOLLOW_UP_PROMPT,),
        version=version_of_prompts(
            follow_up_messages("{query}", []), follow_up_messages("{query}", [("{question}", "{answer}")])
        ),
    ),
    "react": PromptGroup(
        prompts=(REACT_PROMPT,),
        version=version_of_prompts(react_messages("{query}", [_FIRST]), react_messages("{query}", [_NEXT])),
    ),
    "search_r1": PromptGroup(
        prompts=(SEARCH_R1_PROMPT,),
        version=version_of_prompts(search_r1_messages("{query}", [_FIRST]), search_r1_messages("{query}", [_NEXT])),
    ),
    "crag": PromptGroup(prompts=(REWRITE_PROMPT,), version=version_of_prompts(rewrite_messages("{query}"))),
}
"""Prompts of the queries by system, without tools."""
TOOL_PROMPTS = PromptGroup(
    prompts=(REACT_TOOLS_PROMPT,),
    version=version_of_prompts(
        react_messages("{query}", [_FIRST], tools={"{tool}": "{what}"}),
        react_messages("{query}", [Observed(query="{query}", passages="", tool="{tool}")], tools={"{tool}": "{what}"}),
    ),
)
"""Prompts of the agent's queries with tools."""
STEP_VERSIONS: Mapping[str, str] = {name: group.version for name, group in STEP_PROMPTS.items()}
"""Version of the query prompts by system, for manifests."""
