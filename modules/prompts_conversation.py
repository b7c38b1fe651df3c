"""Prompts of a conversation: which earlier turns matter, what they can answer, and what a follow-up asks by itself.

As in ``prompts``, what stays the same comes first. Earlier turns are numbered as they are in the conversation, passages
from 1 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from .prompts import REFUSAL, Message, version_of

if TYPE_CHECKING:
    from .turns import QaPair


class _Reply(BaseModel):
    # No key may be missing: a reply without one is asked for again, or is unknown.
    model_config = ConfigDict(extra="ignore")


class SelectionReply(_Reply):
    """Which earlier turns a question leans on."""

    turns: list[int]


class AssessmentReply(_Reply):
    """What earlier turns give to a question."""

    question: str
    """The question, standing alone."""
    useful: list[int] = Field(description="Numbers of passages.")
    answerable: bool


class SmallTalkReply(_Reply):
    """Whether anything is asked at all."""

    small_talk: bool
    reply: str


class RouteReply(_Reply):
    """Where to search."""

    route: str


SELECT_SYSTEM = """\
Below are the earlier turns of a conversation and a new question. Say which of the turns must be known to understand or
to answer the new question, and 0 if the summary of the turns before them must. A question that names all it asks
about, or begins another topic, needs none of them.
Reply with one JSON object and nothing else: {"turns": [numbers of the turns needed, or none]}."""

ASSESS_SYSTEM = """\
Below are the earlier turns of a conversation, passages that their answers rest on, and a new question.
Reply with one JSON object and nothing else: {"question": string, "useful": [numbers], "answerable": true | false}.
- question: the new question, rewritten so that it is understood without the conversation: name what it refers to, use
  no pronoun that points back, change nothing else, and write in its language.
- useful: the numbers of the passages that hold a fact that is needed to answer it; [] if none does.
- answerable: true only if turns and passages hold everything that the answer needs."""

CONDENSE_SYSTEM = """\
Below are the earlier turns of a conversation and a new question. Rewrite the new question so that it is understood
without the conversation: name what it refers to, use no pronoun that points back, change nothing else. Do not answer
it. Write in the language of the question. Reply with the question only."""

HISTORY_READER_SYSTEM = f"""\
Answer the last question of a conversation from its earlier turns and the passages only. Reply with the answer alone, as
short as possible: a name, a number with its unit, a date, yes or no; no explanation. Write in the language of the
question. If turns and passages do not hold the answer, reply exactly: {REFUSAL}"""

KNOWLEDGE_SYSTEM = f"""\
No document answers the last question of a conversation. Answer it from the conversation and from what you know. Reply
with the answer alone, as short as possible. Write in the language of the question. If you do not know, reply exactly:
{REFUSAL}"""

DIGEST_SYSTEM = """\
Below are passages and a question. Write down what the passages say of the question, in at most 150 words: keep every
name, number, unit and date as it stands, and put the number of its passage in brackets behind each fact. Add nothing.
Write in the language of the passages."""

SUMMARY_SYSTEM = """\
Below are a summary of a conversation so far, if there is one, and the turns that followed. Write one summary of all, in
at most 150 words: what was asked and what was answered; keep every name, number, unit and date as it stands. Add
nothing. Write in the language of the conversation. Reply with the summary only."""

SMALL_TALK_SYSTEM = """\
Decide whether a message is small talk (a greeting, thanks, a farewell, a remark about the conversation itself) or asks
for something that documents may hold. Reply with one JSON object and nothing else: {"small_talk": true | false,
"reply": string}. reply: for small talk one friendly sentence in the language of the message, else ""."""

ROUTE_SYSTEM = """\
Decide where to search for the answer to a question: "rag" for a collection of documents, "web" for the web. Take "web"
only where the answer changes from day to day or is certainly no matter of the documents.
Reply with one JSON object and nothing else: {"route": "rag" | "web"}."""


def render_turns(turns: Iterable[QaPair], *, summary: str = "") -> str:
    """Earlier turns, each under its number, its question as it is understood alone; ``summary`` stands before them."""
    lines = [f"Summary of the turns before:\n{summary}"] if summary else []
    lines += [f"Turn {turn['turn_number']}\nQ: {turn['standalone_query']}\nA: {turn['answer']}" for turn in turns]
    return "\n\n".join(lines)


def render_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """(question, answer) pairs as the history of a prompt."""
    return "\n\n".join(f"Q: {question}\nA: {answer}" for question, answer in pairs)


def select_messages(history: str, query: str) -> list[Message]:
    """Ask which turns matter (``SelectionReply``)."""
    return [("system", SELECT_SYSTEM), ("user", f"Earlier turns:\n{history}\n\nNew question: {query}")]


def assess_messages(history: str, passages: str, query: str) -> list[Message]:
    """Ask what turns and passages give to a question (``AssessmentReply``)."""
    user = f"Earlier turns:\n{history}\n\nPassages:\n{passages}\n\nNew question: {query}"
    return [("system", ASSESS_SYSTEM), ("user", user)]


def condense_messages(history: str, query: str) -> list[Message]:
    """Ask for the question as it stands alone, as plain text."""
    return [("system", CONDENSE_SYSTEM), ("user", f"Earlier turns:\n{history}\n\nNew question: {query}")]


def history_reader_messages(history: str, passages: str, query: str) -> list[Message]:
    """Ask for the answer from earlier turns and their passages."""
    user = f"Earlier turns:\n{history}\n\nPassages:\n{passages}\n\nQuestion: {query}"
    return [("system", HISTORY_READER_SYSTEM), ("user", user)]


def digest_messages(passages: str, query: str) -> list[Message]:
    """Ask for what passages say of a question, in short."""
    return [("system", DIGEST_SYSTEM), ("user", f"Passages:\n{passages}\n\nQuestion: {query}")]


def summary_messages(summary: str, turns: Sequence[QaPair]) -> list[Message]:
    """Ask for one summary of a summary and the turns after it."""
    return [("system", SUMMARY_SYSTEM), ("user", render_turns(turns, summary=summary))]


def small_talk_messages(query: str) -> list[Message]:
    """Ask whether anything is asked (``SmallTalkReply``)."""
    return [("system", SMALL_TALK_SYSTEM), ("user", f"Message: {query}")]


def route_messages(query: str) -> list[Message]:
    """Ask where to search (``RouteReply``)."""
    return [("system", ROUTE_SYSTEM), ("user", f"Question: {query}")]


CONVERSATION_VERSION = version_of(
    SELECT_SYSTEM,
    ASSESS_SYSTEM,
    CONDENSE_SYSTEM,
    HISTORY_READER_SYSTEM,
    KNOWLEDGE_SYSTEM,
    DIGEST_SYSTEM,
    SUMMARY_SYSTEM,
    SMALL_TALK_SYSTEM,
    ROUTE_SYSTEM,
)
"""Changes whenever an instruction does."""
