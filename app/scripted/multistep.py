"""Replies of the scripted model for systems that search in rounds: thoughts, drafts, follow-up questions, actions.

Such requests count as kind "other". The replies are those of an ideal model that knows the questions of a file, as in
``answers``: the question that the evidence leaves open, or the answer if none is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...modules.calls.messages import Message
from ...modules.reader.multistep_prompts import (
    FINAL_ANSWER,
    FINAL_THOUGHT,
    FINISH,
    FOLLOW_UP,
    NO_FOLLOW_UP_YET,
    OBSERVATION,
    SEARCH,
    THOUGHT,
    Observed,
    draft_messages,
    follow_up_messages,
    react_messages,
    thought_messages,
)
from ...modules.reader.prompts import REFUSAL
from .answers import ChatReply, EvidenceScript, ScriptedAnswers, play

NOTHING_KNOWN = "Nothing is known about this."
_EARLIER_ACTION = re.compile(
    rf"\n\n(?:{re.escape(THOUGHT)} .*\n)?{re.escape(SEARCH)}\[.*\]\n{re.escape(OBSERVATION)}\n"
)


def step_reply(answers: ScriptedAnswers, messages: Sequence[Message]) -> ChatReply | None:
    """Reply to a prompt of ``modules.reader.multistep_prompts``; None for any other.

    Raises:
        PromptMismatch: The system message is judgetree's, but the user message does not follow its template.
    """
    return play(_SCRIPTS, answers, messages, module="reader.multistep_prompts")


def _thought(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    answer = answers.read(query, evidence)
    return _open_question(answers, query, evidence) if answer == REFUSAL else f"{FINAL_THOUGHT} {answer}."


def _draft(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    answer = answers.read(query, evidence)
    return _open_question(answers, query, evidence) if answer == REFUSAL else f"{query} {answer}."


def _open_question(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    """Return the question that the evidence leaves open, as the judge would ask it."""
    score, remaining = answers.judge(query, evidence)
    return remaining if score == 1 else NOTHING_KNOWN


def _follow_up(answers: ScriptedAnswers, query: str, answered: str) -> str:
    question = answers.follow_up(query, answered)
    return f"{FOLLOW_UP} {question}" if question else f"{FINAL_ANSWER} {answers.read(query, answered)}"


def _action(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    # Earlier queries must go: they would pass for sub-questions answered by the passage below them.
    observed = _EARLIER_ACTION.sub("\n\n", evidence)
    if question := answers.follow_up(query, observed):
        return f"{THOUGHT} This is missing: {question}\n{SEARCH}[{question}]"
    return f"{THOUGHT} Nothing is left to search for.\n{FINISH}[{answers.read(query, observed)}]"


_QUERY, _EVIDENCE, _THOUGHTS = "FIELDqueryFIELD", "FIELDevidenceFIELD", "FIELDthoughtsFIELD"


def _pattern(messages: list[Message], evidence: str = _EVIDENCE) -> tuple[str, re.Pattern[str]]:
    """Make a pattern of the user message with the shortest query; returns it with the system message."""
    (_, system), (_, user) = messages
    pattern = re.escape(user).replace(_QUERY, "(?P<query>.*?)", 1).replace(_QUERY, "(?P=query)")
    pattern = pattern.replace(re.escape(evidence), "(?P<evidence>.*)", 1).replace(_THOUGHTS, ".*")
    return system, re.compile(pattern, re.DOTALL)


def _scripts() -> Mapping[str, EvidenceScript]:
    thought = _pattern(thought_messages(_QUERY, _EVIDENCE, [_THOUGHTS]))
    draft = _pattern(draft_messages(_QUERY, _EVIDENCE))
    follow_up = _pattern(follow_up_messages(_QUERY, []), NO_FOLLOW_UP_YET)
    action = _pattern(react_messages(_QUERY, [Observed(query=_QUERY, passages=_EVIDENCE)]))
    replies = (_thought, _draft, _follow_up, _action)
    return {
        system: EvidenceScript(pattern, reply)
        for (system, pattern), reply in zip((thought, draft, follow_up, action), replies, strict=True)
    }


_SCRIPTS = _scripts()
