"""Every prompt that a model sees, and the version that goes into fingerprints.

The scale of verdicts has one direction everywhere: 2 = answers the query alone, 1 = holds a needed fact, 0 = does not
help. In each prompt what stays the same comes first (instructions, then query, then passage), so that providers and
llama.cpp can reuse the prefix.
"""

from __future__ import annotations

import hashlib
import json

from .material import as_line, as_material

Message = tuple[str, str]
"""(role, text), role being "system", "user" or, for what a model said before, "assistant"."""

REFUSAL = "I cannot answer this question."

SCALE = """\
2 = the passage alone answers the query
1 = the passage holds a fact that is needed, but another fact is still missing
0 = the passage does not help"""

JUDGE_SYSTEM = f"""\
You judge how far one passage helps to answer a query. Score:
{SCALE}

Reply with one JSON object and nothing else: {{"reason": string, "score": 0 | 1 | 2, "next_query": string}}.
- reason: at most 20 words.
- next_query: for score 1 only, else "". One question that asks for the fact still missing. It must be understood
  without the passage: name things as the passage names them, use no pronoun, and do not repeat the query.
Write in the language of the query."""

JUDGE_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "score": {"type": "integer", "enum": [0, 1, 2]},
        "next_query": {"type": "string"},
    },
    "required": ["reason", "score", "next_query"],
    "additionalProperties": False,
}

JSON_REPAIR = "That reply cannot be used: {problem} Reply again with the JSON object alone."

NEEDED_SYSTEM = "You check whether a passage helps to answer a query. Reply with yes or no only."
NEEDED_QUESTION = 'Is the passage about something that must be known to answer "{query}"?'
ALONE_QUESTION = "Can the query be answered from this passage alone?"

SUB_QUESTION_SYSTEM = """\
A query needs several facts. The passage gives one of them. Write one short question that asks for the fact that is
still missing. It must be understood without the passage: name things as the passage names them, use no pronoun, and
do not repeat the query. Write in the language of the query. Reply with the question only."""

READER_SYSTEM = f"""\
Answer the question from the evidence only. The evidence is a list of passages; below a passage there may be a
supplementary question with its answer, which is evidence too. Combine the facts that the question needs.
Reply with the answer alone, as short as possible: a name, a number with its unit, a date, yes or no; no explanation.
Write in the language of the question. If the evidence does not hold the answer, reply exactly: {REFUSAL}"""

CLOSED_BOOK_SYSTEM = f"""\
Answer the question. Reply with the answer alone, as short as possible: a name, a number with its unit, a date, yes or
no; no explanation. Write in the language of the question. If you do not know, reply exactly: {REFUSAL}"""


def version_of(*templates: str) -> str:
    """Eight hexadecimal digits that change whenever one of the templates does."""
    return hashlib.sha256("\x00".join(templates).encode()).hexdigest()[:8]


def judge_messages(query: str, passage: str) -> list[Message]:
    """Ask for a whole verdict as JSON (``JUDGE_SCHEMA``)."""
    return [("system", JUDGE_SYSTEM), ("user", f"Query: {query}\n\nPassage:\n{as_material(passage)}")]


def needed_messages(query: str, passage: str) -> list[Message]:
    """Ask, for yes or no, whether the passage is needed; the query stands before the passage and after it."""
    question = NEEDED_QUESTION.replace("{query}", query)  # not format: a query may hold braces
    return [("system", NEEDED_SYSTEM), ("user", f"Query: {query}\n\nPassage:\n{as_material(passage)}\n\n{question}")]


def alone_messages(query: str, passage: str) -> list[Message]:
    """Ask, for yes or no, whether the passage alone answers; shares its prefix with ``needed_messages``."""
    user = f"Query: {query}\n\nPassage:\n{as_material(passage)}\n\n{ALONE_QUESTION}"
    return [("system", NEEDED_SYSTEM), ("user", user)]


def sub_question_messages(query: str, passage: str, *, rejected: str = "") -> list[Message]:
    """Ask for the question about the missing fact; ``rejected`` is an earlier try that could not be used."""
    again = f"\n\nNot usable, write another one: {as_line(rejected)}" if rejected else ""
    return [("system", SUB_QUESTION_SYSTEM), ("user", f"Query: {query}\n\nPassage:\n{as_material(passage)}{again}")]


def reader_messages(query: str, context: str) -> list[Message]:
    """Ask for the answer from the evidence."""
    return [("system", READER_SYSTEM), ("user", f"Question: {query}\n\nEvidence:\n{context}\n\nQuestion: {query}")]


def closed_book_messages(query: str) -> list[Message]:
    """Ask for the answer from what the model knows."""
    return [("system", CLOSED_BOOK_SYSTEM), ("user", f"Question: {query}")]


def _texts(messages: list[Message]) -> tuple[str, ...]:
    return tuple(text for _, text in messages)


READER_VERSION = version_of(*_texts(reader_messages("{query}", "{context}")))
CLOSED_BOOK_VERSION = version_of(*_texts(closed_book_messages("{query}")))
GENERATED_JUDGE_VERSION = version_of(
    *_texts(judge_messages("{query}", "{passage}")), JSON_REPAIR, json.dumps(JUDGE_SCHEMA)
)
LOGPROB_JUDGE_VERSION = version_of(
    *_texts(needed_messages("{query}", "{passage}")),
    *_texts(alone_messages("{query}", "{passage}")),
    *_texts(sub_question_messages("{query}", "{passage}", rejected="{rejected}")),
)
