"""What the scripted model writes for systems that search in rounds: sentences, drafts, follow-up questions, actions.

Such requests count as kind "other". As in ``scripted_answers`` the replies are those of an ideal model that knows the
questions of a file: they say what the evidence leaves to be asked, and say the answer once nothing is left.
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
    """The reply to a prompt of ``modules.reader.multistep_prompts``; None for any other.

    Raises:
        PromptMismatch: The system message is one of ours, but the user message does not follow its template.
    """
    return play(_SCRIPTS, answers, messages, module="reader.multistep_prompts")


def _thought(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    answer = answers.read(query, evidence)
    return _what_is_missing(answers, query, evidence) if answer == REFUSAL else f"{FINAL_THOUGHT} {answer}."


def _draft(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    answer = answers.read(query, evidence)
    return _what_is_missing(answers, query, evidence) if answer == REFUSAL else f"{query} {answer}."


def _what_is_missing(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    """The question that is left once the evidence is known, as the judge would ask it."""
    score, remaining = answers.judge(query, evidence)
    return remaining if score == 1 else NOTHING_KNOWN


def _follow_up(answers: ScriptedAnswers, query: str, answered: str) -> str:
    question = answers.follow_up(query, answered)
    return f"{FOLLOW_UP} {question}" if question else f"{FINAL_ANSWER} {answers.read(query, answered)}"


def _action(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    # A query is no knowledge: left in, it would pass for a sub-question that the passage below it answers.
    observed = _EARLIER_ACTION.sub("\n\n", evidence)
    if question := answers.follow_up(query, observed):
        return f"{THOUGHT} This is missing: {question}\n{SEARCH}[{question}]"
    return f"{THOUGHT} Nothing is left to search for.\n{FINISH}[{answers.read(query, observed)}]"


_QUERY, _EVIDENCE, _THOUGHTS = "FIELDqueryFIELD", "FIELDevidenceFIELD", "FIELDthoughtsFIELD"


def _pattern(messages: list[Message], evidence: str = _EVIDENCE) -> tuple[str, re.Pattern[str]]:
    """System message, and a pattern of the user message: the query ends where the rest first fits."""
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
