"""Prompts of the reader and of its strategies, the parsers of their replies, and their versions.

All have the reader's rules: from the evidence only, the answer alone and short, and the same refusal. The parsers
accept any reply and raise nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..calls.messages import Message, version_of_prompts
from ..calls.prompts import DEFAULT_PROMPTS, Prompt, PromptGroup, Prompts
from .refusals import is_refusal

REFUSAL = "I cannot answer this question."

READER_SYSTEM = f"""\
Answer the question from the evidence only. The evidence is a list of passages; below a passage there may be a
supplementary question with its answer, which is evidence too. Combine the facts that the question needs.
Reply with the answer alone, as short as possible: a name, a number with its unit, a date, yes or no; no explanation.
Write in the language of the question. If the evidence does not hold the answer, reply exactly: {REFUSAL}"""

CLOSED_BOOK_SYSTEM = f"""\
Answer the question. Reply with the answer alone, as short as possible: a name, a number with its unit, a date, yes or
no; no explanation. Write in the language of the question. If you do not know, reply exactly: {REFUSAL}"""


DIGEST_SYSTEM = """\
Below are passages and a question. Write down what the passages say of the question, in at most 150 words: keep every
name, number, unit and date as it stands, and put the number of its passage in brackets behind each fact. Add nothing.
Write in the language of the passages."""


READER = Prompt(
    name="reader",
    about="answer from the evidence; the reply is the answer",
    system=READER_SYSTEM,
    user="Question: {query}\n\nEvidence:\n{evidence}\n\nQuestion: {query}",
)
CLOSED_BOOK = Prompt(
    name="closed_book",
    about="system llm: answer without evidence; the reply is the answer",
    system=CLOSED_BOOK_SYSTEM,
    user="Question: {query}",
)
DIGEST = Prompt(
    name="digest",
    about="what passages say of the question, where all of them are too long for a prompt of a conversation",
    system=DIGEST_SYSTEM,
    user="Passages:\n{passages}\n\nQuestion: {query}",
)


def reader_messages(query: str, evidence: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for the answer from the evidence."""
    return prompts.messages(READER, query=query, evidence=evidence)


def closed_book_messages(query: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for the answer without evidence."""
    return prompts.messages(CLOSED_BOOK, query=query)


def digest_messages(passages: str, query: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for a short digest of what the passages say about the question."""
    return prompts.messages(DIGEST, passages=passages, query=query)


READER_VERSION = version_of_prompts(reader_messages("{query}", "{context}"))
CLOSED_BOOK_VERSION = version_of_prompts(closed_book_messages("{query}"))
READER_PROMPTS = PromptGroup(prompts=(READER,), version=READER_VERSION)
CLOSED_BOOK_PROMPTS = PromptGroup(prompts=(CLOSED_BOOK,), version=CLOSED_BOOK_VERSION)


ANSWER = "Answer:"
FACT = "Fact:"
CONFIDENCE = "Confidence:"
NOTHING_YET = "(nothing yet)"
NO_CONFIDENCE = -1.0
"""Confidence of a reply without one; below all others."""

_AS_SHORT = "as short as possible: a name, a number with its unit, a date, yes or no; no explanation"

NOTE_SYSTEM = f"""\
A question is put to several passages, each read by itself; you are given one of them. Below the passage there may be a
supplementary question with its answer, which belongs to it. Reply with one line and nothing else:
- {ANSWER} and the answer, if this passage alone answers the question; {_AS_SHORT}.
- {FACT} and, in at most two sentences, what the passage tells of the facts that the question needs, if others are still
  missing. It must be understood without the passage: name things as the passage names them, use no pronoun.
- If the passage does not help, exactly: {REFUSAL}
Write in the language of the question; keep the words "{ANSWER}" and "{FACT}" as they are."""

COMBINE_SYSTEM = f"""\
Answer the question from the notes only. Each note comes from one passage: "{ANSWER}" is what that passage answers by
itself, "{FACT}" what it tells of the facts that the question needs; a note may also be the passage itself. Combine the
facts that the question needs; where notes contradict each other, go by the one that fits the question best.
Reply with the answer alone, {_AS_SHORT}.
Write in the language of the question. If the notes do not hold the answer, reply exactly: {REFUSAL}"""

REFINE_SYSTEM = f"""\
A question is answered passage by passage. You are given what is known so far and the next passage; below the passage
there may be a supplementary question with its answer, which is evidence too. Write what is known now, in at most three
sentences and nothing else: the facts that the question needs, from before and from this passage, and the answer if they
give it. Correct what the passage shows to be wrong. It must be understood without the passages: name things in full,
use no pronoun. Write in the language of the question. If nothing of all this helps, reply exactly: {REFUSAL}"""

FINISH_SYSTEM = f"""\
Answer the question from the evidence only: what earlier passages have told, and the passages that come after them.
Below a passage there may be a supplementary question with its answer, which is evidence too. Combine the facts that the
question needs; correct what a passage shows to be wrong.
Reply with the answer alone, {_AS_SHORT}.
Write in the language of the question. If the evidence does not hold the answer, reply exactly: {REFUSAL}"""

SCORED_SYSTEM = f"""\
Answer the question from this passage only. Below it there may be a supplementary question with its answer, which
belongs to it. Reply with two lines and nothing else:
{ANSWER} the answer alone, {_AS_SHORT}.
{CONFIDENCE} a whole number from 0 to 100: how sure you are that the passage alone gives this answer.
Write in the language of the question; keep the words "{ANSWER}" and "{CONFIDENCE}" as they are. If the passage alone
does not hold the answer, the answer is exactly: {REFUSAL}"""


@dataclass(frozen=True, kw_only=True)
class Note:
    """A note of what one passage contributes to a question."""

    text: str
    """Non-empty text that is not a refusal."""
    answers: bool
    """True if it answers the question alone, False if it gives a needed fact."""

    def __str__(self) -> str:
        return f"{ANSWER if self.answers else FACT} {self.text}"


@dataclass(frozen=True, kw_only=True)
class ScoredAnswer:
    """An answer from one passage."""

    text: str
    """The answer, which may be a refusal or empty."""
    confidence: float
    """In [0, 100], higher is surer; ``NO_CONFIDENCE`` if the reply has none."""


NOTE = Prompt(
    name="map_reduce_note",
    about=f"map_reduce: note of one passage, as {ANSWER} … or {FACT} …",
    system=NOTE_SYSTEM,
    user="Question: {query}\n\nPassage:\n{passage}\n\nQuestion: {query}",
)
COMBINE = Prompt(
    name="map_reduce_answer",
    about="map_reduce: answer from the notes; the reply is the answer",
    system=COMBINE_SYSTEM,
    user="Question: {query}\n\nNotes:\n{notes}\n\nQuestion: {query}",
)
REFINE = Prompt(
    name="refine_known",
    about="refine: what is known after one more passage, in free text",
    system=REFINE_SYSTEM,
    user="Question: {query}\n\nKnown so far:\n{known}\n\nPassage:\n{passage}\n\nQuestion: {query}",
)
FINISH = Prompt(
    name="refine_answer",
    about="refine: answer from what is known and the last passages; the reply is the answer",
    system=FINISH_SYSTEM,
    user="Question: {query}\n\nKnown so far:\n{known}\n\nEvidence:\n{evidence}\n\nQuestion: {query}",
)
SCORED = Prompt(
    name="map_rerank",
    about=f"map_rerank: answer from one passage, as {ANSWER} … and {CONFIDENCE} 0 to 100",
    system=SCORED_SYSTEM,
    user="Question: {query}\n\nPassage:\n{passage}\n\nQuestion: {query}",
)


def note_messages(query: str, passage: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for a note of what one passage gives for the question (map_reduce)."""
    return prompts.messages(NOTE, query=query, passage=passage)


def combine_messages(query: str, notes: Sequence[str], prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for the answer from the notes of all passages (map_reduce), in their order."""
    return prompts.messages(COMBINE, query=query, notes="\n\n".join(notes))


def refine_messages(query: str, known: str, passage: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask what is known after one more passage (refine); ``known`` is the state before it, or ``""``."""
    return prompts.messages(REFINE, query=query, known=known or NOTHING_YET, passage=passage)


def finish_messages(query: str, known: str, evidence: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for the answer from the known facts and the unread passages (refine)."""
    return prompts.messages(FINISH, query=query, known=known or NOTHING_YET, evidence=evidence)


def scored_messages(query: str, passage: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for an answer from one passage and its confidence (map_rerank)."""
    return prompts.messages(SCORED, query=query, passage=passage)


_LABEL = re.compile(
    r"^[\s>#*_`-]*+(?:(?:(?P<answer>answer|答案|回答)|(?P<fact>facts?|事实|事實))[*_` ]*+[:：][*_` ]*+)?+",
    re.IGNORECASE | re.MULTILINE,
)
"""Marks at the start of a line, with the label behind them if there is one, so that no mark is looked at again."""
_CONFIDENCE = re.compile(
    r"(?:confidence|score|certainty|置信度|信心|把握)[^\d\n]{0,20}"
    r"(?P<number>\d+(?:\.\d+)?)\s*(?:%|/\s*100\b)?[\s)\]）*_`.。]*",
    re.IGNORECASE,
)
_BEFORE_CONFIDENCE = re.compile(r"(?<![\s(\[（*_`;,，；])[\s(\[（*_`;,，；]++\Z")
_AROUND = " \t\r\n*_`"


def parse_note(reply: str) -> Note | None:
    """Return the note in a reply; None where the passage does not help. Unlabelled text is a fact.

    >>> parse_note("**Answer:** 40 mm")
    Note(text='40 mm', answers=True)
    >>> str(parse_note("Norm A names the drum."))
    'Fact: Norm A names the drum.'
    """
    sections = _sections(reply) or [("fact", reply)]
    useful = [(label, " ".join(text.split()).strip(_AROUND)) for label, text in sections if not is_refusal(text)]
    answer = next((text for label, text in useful if label == "answer"), "")
    if answer:
        return Note(text=answer, answers=True)
    facts = " ".join(text for _, text in useful if text)
    return None if is_refusal(facts) else Note(text=facts, answers=False)


def parse_scored(reply: str) -> ScoredAnswer:
    """Return answer and confidence of a reply; without labels the answer is the text beside the confidence.

    A number up to 1 with a decimal point counts as a share of 1, one over 100 as 100.

    >>> parse_scored("Answer: 40 mm\\nConfidence: 85%")
    ScoredAnswer(text='40 mm', confidence=85.0)
    >>> parse_scored("40 mm, I think")
    ScoredAnswer(text='40 mm, I think', confidence=-1.0)
    """
    scores = list(_CONFIDENCE.finditer(reply))
    rest, confidence = reply, NO_CONFIDENCE
    if scores:
        last, before = scores[-1], scores[-2].end() if len(scores) > 1 else 0
        between = _BEFORE_CONFIDENCE.sub("", reply[before : last.start()])
        rest = f"{reply[:before]}{between}\n{reply[last.end() :]}"
        confidence = _percent(last["number"])
    text = next((text for label, text in _sections(rest) if label == "answer"), rest).strip(_AROUND)
    return ScoredAnswer(text=text, confidence=confidence)


def _percent(number: str) -> float:
    value = float(number)
    return min(100 * value if "." in number and value <= 1 else value, 100.0)


def _sections(reply: str) -> list[tuple[str, str]]:
    """Return (label, text) of each labelled part: an answer's first line, all lines of a fact."""
    labels = [found for found in _LABEL.finditer(reply) if found["answer"] or found["fact"]]
    ends = [*(label.start() for label in labels), len(reply)][1:]
    parts = [(label, reply[label.end() : end].strip()) for label, end in zip(labels, ends, strict=True)]
    return [("answer", part.partition("\n")[0]) if label["answer"] else ("fact", part) for label, part in parts]


STRATEGY_PROMPTS: Mapping[str, PromptGroup] = {
    "map_reduce": PromptGroup(
        prompts=(NOTE, COMBINE),
        version=version_of_prompts(
            note_messages("{query}", "{passage}"), combine_messages("{query}", ["{note}", "{note}"])
        ),
    ),
    "refine": PromptGroup(
        prompts=(REFINE, FINISH),
        version=version_of_prompts(
            refine_messages("{query}", "", "{passage}"),
            refine_messages("{query}", "{known}", "{passage}"),
            finish_messages("{query}", "{known}", "{context}"),
        ),
    ),
    "map_rerank": PromptGroup(prompts=(SCORED,), version=version_of_prompts(scored_messages("{query}", "{passage}"))),
}
"""Prompts of a strategy by its name; "stuff" has the reader's only."""
STRATEGY_VERSIONS: Mapping[str, str] = {name: group.version for name, group in STRATEGY_PROMPTS.items()}
"""Version of a strategy's prompts by its name, for manifests."""
