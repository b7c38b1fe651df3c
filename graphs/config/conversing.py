"""Keys of how a conversation is led."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import ConfigDict, with_config

FromHistory = Literal["assessed", "never", "trust"]
"""Condition for an answer from earlier turns: the judge confirms their evidence, never, or the model proposes one."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class ConversationSwitches:
    """The options of conversations that an experiment may have too, since they are plain data."""

    answer_from_history: FromHistory = "assessed"
    """``assessed``: earlier turns answer if the model proposes an answer with kept evidence, and the judge scores that
    evidence 2 for the question. ``never``: every follow-up is condensed and searched for, as in LangChain's chain.
    ``trust``: a proposed answer needs no confirmation. An empty answer or a refusal always leads to a search."""
    answer_without_evidence: bool = False
    """After a refusal, answer from history and general knowledge, and mark the turn accordingly."""
    summary_memory: bool = False
    """Fold turns that are too old for a prompt into a summary. Costs one model call in ``max_recent_turns`` turns."""
    rephrase_question: bool = True
    """Show the reader the stand-alone question too; False shows it the question in the user's words only."""
    direct_answer: bool = False
    """Answer small talk without a search. Costs one model call a turn."""
