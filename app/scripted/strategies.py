"""Replies of the scripted model for answer strategies that read passage by passage.

Such requests count as kind "other". The replies are those of an ideal model that knows the questions of a file, as in
``answers``: an answer that takes two passages is not given from one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...modules.calls.messages import Message
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
from .answers import ChatReply, EvidenceScript, ScriptedAnswers, play

SURE = 90
"""Confidence of an answer; that of a refusal is 0."""


def strategy_reply(answers: ScriptedAnswers, messages: Sequence[Message]) -> ChatReply | None:
    """Reply to a prompt of ``modules.reader.prompts``; None for any other.

    Raises:
        PromptMismatch: The system message is judgetree's, but the user message does not follow its template.
    """
    return play(_SCRIPTS, answers, messages, module="reader.strategy_prompts")


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


_QUERY, _FROM, _TO = "FIELDqueryFIELD", "FIELDfromFIELD", "FIELDtoFIELD"


def _pattern(messages: list[Message]) -> tuple[str, re.Pattern[str]]:
    """Make a pattern of the user message, with the evidence between two fields; also returns the system message."""
    (_, system), (_, user) = messages
    pattern = re.escape(user).replace(_QUERY, "(?P<query>.*?)", 1).replace(_QUERY, "(?P=query)")
    return system, re.compile(pattern.replace(_FROM, "(?P<evidence>.*", 1).replace(_TO, ".*)", 1), re.DOTALL)


def _scripts() -> Mapping[str, EvidenceScript]:
    whole = _FROM + _TO
    replies = (
        (note_messages(_QUERY, whole), _note),
        (combine_messages(_QUERY, [whole]), _combined),
        (refine_messages(_QUERY, _FROM, _TO), _known),
        (finish_messages(_QUERY, _FROM, _TO), ScriptedAnswers.read),
        (scored_messages(_QUERY, whole), _scored),
    )
    return {
        system: EvidenceScript(pattern, reply)
        for (system, pattern), reply in ((_pattern(m), reply) for m, reply in replies)
    }


_SCRIPTS = _scripts()
