"""The table of all prompts, by name and by what uses them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..calls.prompts import Prompt
from ..extraction.prompts import TRIPLES
from ..judge.prompts import ALONE, ASK_AGAIN, BATCH, INSERT_BLOCK, JUDGE, LOOK_UP, NEEDED, SUB_QUESTION
from ..memory.prompts import CONVERSATION_PROMPTS
from ..reader.prompts import CLOSED_BOOK, DIGEST, READER, STRATEGY_PROMPTS
from ..reader.step_prompts import STEP_PROMPTS, TOOL_PROMPTS

USED_BY: Mapping[str, tuple[Prompt, ...]] = {
    "reader": (
        READER,
        CLOSED_BOOK,
        *(prompt for group in STRATEGY_PROMPTS.values() for prompt in group.prompts),
        DIGEST,
    ),
    "judge": (JUDGE, BATCH, NEEDED, ALONE, SUB_QUESTION, LOOK_UP, ASK_AGAIN, INSERT_BLOCK),
    "systems in rounds": tuple(prompt for group in (*STEP_PROMPTS.values(), TOOL_PROMPTS) for prompt in group.prompts),
    "graph triples": (TRIPLES,),
    "conversation": tuple(prompt for prompt in CONVERSATION_PROMPTS.prompts if prompt not in (READER, DIGEST)),
}
"""Judgetree's prompts by what uses them first; conversations use those of the reader too."""

PROMPTS: Mapping[str, Prompt] = MappingProxyType(
    {prompt.name: prompt for prompts in USED_BY.values() for prompt in prompts}
)
"""Judgetree's prompts by name."""
