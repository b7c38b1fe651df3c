"""Replies of the scripted model for answer strategies that read passage by passage.

Such requests count as kind "other". The replies are those of an ideal model that knows the questions of a file, as in
``answers``: an answer that takes two passages is not given from one.
"""

from __future__ import annotations

import re
from functools import cache

from ...modules.calls.messages import Message
from ...modules.calls.prompts import Prompts
from ...modules.reader.prompts import (
    ANSWER,
    CONFIDENCE,
    FACT,
    REFUSAL,
    combine_messages,
    finish_messages,
    note_messages,
    refine_messages,
    scored_messages,
)
from .answers import EvidenceReply, ScriptedAnswers
from .templates import QUERY, Template, template_of

SURE = 90
"""Confidence of an answer; that of a refusal is 0."""


def _note(answers: ScriptedAnswers, query: str, passage: str) -> str:
    answer = answers.read(query, passage)
    if answer != REFUSAL:
        return f"{ANSWER} {answer}"
    known = _known(answers, query, passage)
    return known if known == REFUSAL else f"{FACT} {known}"


def _combined(answers: ScriptedAnswers, query: str, notes: str) -> str:
    """Return the answer of a note, else what follows from the facts of all notes."""
    alone = re.search(rf"^\[\d+\] {ANSWER} (.+)$", notes, re.MULTILINE)
    return alone[1] if alone else answers.read(query, notes)


def _known(answers: ScriptedAnswers, query: str, evidence: str) -> str:
    """List the facts in the evidence, each as question and answer, which the reader accepts."""
    facts = answers.facts_in(query, evidence)
    return " ".join(f"{question} {answer}" for question, answer in facts) or REFUSAL


def _scored(answers: ScriptedAnswers, query: str, passage: str) -> str:
    answer = answers.read(query, passage)
    return f"{ANSWER} {answer}\n{CONFIDENCE} {0 if answer == REFUSAL else SURE}"


_KNOWN, _EVIDENCE = "FIELDknownFIELD", "FIELDevidenceFIELD"
_GROUPS = {QUERY: "(?P<query>.*?)", _KNOWN: "(?P<known>.*?)", _EVIDENCE: "(?P<evidence>.*)"}
_BUILT_BY = "judgetree.modules.reader.prompts"


@cache
def strategy_scripts(prompts: Prompts) -> list[tuple[Template, EvidenceReply]]:
    """Return the replies to the prompts of answer strategies in ``modules.reader.prompts``, for ``evidence_reply``."""
    built: tuple[tuple[list[Message], EvidenceReply], ...] = (
        (note_messages(QUERY, _EVIDENCE, prompts), _note),
        (combine_messages(QUERY, [_EVIDENCE], prompts), _combined),
        (refine_messages(QUERY, _KNOWN, _EVIDENCE, prompts), _known),
        (finish_messages(QUERY, _KNOWN, _EVIDENCE, prompts), ScriptedAnswers.read),
        (scored_messages(QUERY, _EVIDENCE, prompts), _scored),
    )
    return [(template_of(messages, _GROUPS, built_by=_BUILT_BY), reply) for messages, reply in built]
