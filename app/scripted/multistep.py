"""Replies of the scripted model for systems that search in rounds: thoughts, drafts, follow-up questions, actions.

Such requests count as kind "other". The replies are those of an ideal model that knows the questions of a file, as in
``answers``: the question that the evidence leaves open, or the answer if none is.
"""

from __future__ import annotations

import re
from functools import cache

from ...modules.calls.messages import Message
from ...modules.calls.prompts import Prompts
from ...modules.reader.multistep_prompts import (
    ACTION,
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
    rewrite_messages,
    thought_messages,
)
from ...modules.reader.prompts import REFUSAL
from ...modules.reader.tagged_prompts import ANSWER_END, INFORMATION, SEARCH_END, search_r1_messages
from .answers import EvidenceReply, ScriptedAnswers
from .templates import QUERY, Template, template_of

NOTHING_KNOWN = "Nothing is known about this."
_EARLIER_ACTION = re.compile(
    rf"\n\n(?:{re.escape(THOUGHT)} .*\n)?{re.escape(ACTION)} [\w-]+\[.*\]\n{re.escape(OBSERVATION)}\n"
)
_EARLIER_SEARCH = re.compile(
    rf"\n</information>\n\n(?:<think> .*\n)?<search> .*{re.escape(SEARCH_END)}\n{re.escape(INFORMATION)}\n"
)


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


def _tagged(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    found = _EARLIER_SEARCH.sub("\n\n", evidence)
    if question := answers.follow_up(query, found):
        return f"<think> This is missing: {question} </think>\n<search> {question} {SEARCH_END}"
    return f"<think> Nothing is left to search for. </think>\n<answer> {answers.read(query, found)} {ANSWER_END}"


def _rewrite(answers: ScriptedAnswers, query: str, _: str) -> str:
    return answers.follow_up(query, "") or NOTHING_KNOWN


_EVIDENCE, _THOUGHTS, _TOOL = "FIELDevidenceFIELD", "FIELDthoughtsFIELD", "FIELDtoolFIELD"
_GROUPS = {QUERY: "(?P<query>.*?)", _EVIDENCE: "(?P<evidence>.*)", _THOUGHTS: ".*", f"{_TOOL}[input]: ": ".*?"}
_FIRST_FOLLOW_UP = {QUERY: "(?P<query>.*?)", NO_FOLLOW_UP_YET: "(?P<evidence>.*)"}
_BUILT_BY = "judgetree.modules.reader.multistep_prompts"


@cache
def step_scripts(prompts: Prompts) -> list[tuple[Template, EvidenceReply]]:
    """Return the replies to the prompts of ``modules.reader.multistep_prompts``, for ``evidence_reply``."""
    built: tuple[tuple[list[Message], EvidenceReply], ...] = (
        (thought_messages(QUERY, _EVIDENCE, [_THOUGHTS], prompts), _thought),
        (draft_messages(QUERY, _EVIDENCE, prompts), _draft),
        (react_messages(QUERY, [Observed(query=QUERY, passages=_EVIDENCE)], prompts), _action),
        (react_messages(QUERY, [Observed(query=QUERY, passages=_EVIDENCE)], prompts, tools={_TOOL: ""}), _action),
        (search_r1_messages(QUERY, [Observed(query=QUERY, passages=_EVIDENCE)], prompts), _tagged),
        (rewrite_messages(QUERY, prompts), _rewrite),
    )
    first_follow_up = template_of(follow_up_messages(QUERY, [], prompts), _FIRST_FOLLOW_UP, built_by=_BUILT_BY)
    return [
        *((template_of(messages, _GROUPS, built_by=_BUILT_BY), reply) for messages, reply in built),
        (first_follow_up, _follow_up),
    ]
