"""Prompts of the reader: an answer from evidence, an answer without any, and a digest of what fills a prompt."""

from __future__ import annotations

from ..calls.messages import Message, texts_of, version_of

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


def reader_messages(query: str, context: str) -> list[Message]:
    """Ask for the answer from the evidence."""
    return [("system", READER_SYSTEM), ("user", f"Question: {query}\n\nEvidence:\n{context}\n\nQuestion: {query}")]


def closed_book_messages(query: str) -> list[Message]:
    """Ask for the answer from what the model knows."""
    return [("system", CLOSED_BOOK_SYSTEM), ("user", f"Question: {query}")]


def digest_messages(passages: str, query: str) -> list[Message]:
    """Ask for what passages say of a question, in short."""
    return [("system", DIGEST_SYSTEM), ("user", f"Passages:\n{passages}\n\nQuestion: {query}")]


READER_VERSION = version_of(*texts_of(reader_messages("{query}", "{context}")))
CLOSED_BOOK_VERSION = version_of(*texts_of(closed_book_messages("{query}")))
