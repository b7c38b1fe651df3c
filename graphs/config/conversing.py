"""Keys of how a conversation is led."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

FromHistory = Literal["assessed", "never", "trust"]
"""Condition for an answer from earlier turns: the judge confirms their evidence, never, or the model proposes one."""


class ConversationSwitches(BaseModel):
    """The options of conversations that are plain data; see ``ConversationOptions``."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    answer_from_history: FromHistory = "assessed"
    """When earlier turns may answer: assessed (the judge confirms their evidence), never or trust."""
    answer_without_evidence: bool = False
    """Answer from general knowledge where the evidence does not."""
    summary_memory: bool = False
    """Fold old turns into a running summary."""
    rephrase_question: bool = True
    """Let the reader answer the stand-alone question."""
    direct_answer: bool = False
    """Ask first whether a message is small talk."""
