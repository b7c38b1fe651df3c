"""Prompts of a conversation: selection and assessment of earlier turns, stand-alone questions, summaries and routes.

Each prompt starts with its constant parts. Earlier turns have their numbers in the conversation, passages numbers from
1. Turns are shown in the user's words, with the interpretation below them, marked as a guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from ..calls.messages import Message, version_of
from ..calls.prompts import DEFAULT_PROMPTS, Prompt, PromptGroup, Prompts
from ..reader.evidence import as_line, as_material
from ..reader.prompts import DIGEST, DIGEST_SYSTEM, READER, REFUSAL

if TYPE_CHECKING:
    from .turns import QaPair


UNDERSTOOD = "Understood as: "
"""Stands before the interpretation of a question, on a line of its own below the user's words."""


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
    answer: str
    """From turns and passages alone; ``""`` where they do not hold it."""


class SmallTalkReply(_Reply):
    """Whether anything is asked at all."""

    small_talk: bool
    reply: str


class RouteReply(_Reply):
    """Where to search."""

    route: str


_ON_TURNS = f"""\
Q is what the user wrote; a line "{UNDERSTOOD.strip()}" below it is a guess at what was meant, and may be wrong."""

SELECT_SYSTEM = f"""\
Below are the earlier turns of a conversation and a new question. {_ON_TURNS}
Say which of the turns must be known to understand or to answer the new question, and 0 if the summary of the turns
before them must. A question that names all it asks about, or begins another topic, needs none of them.
Reply with one JSON object and nothing else: {{"turns": [numbers of the turns needed, or none]}}."""

ASSESS_SYSTEM = f"""\
Below are the earlier turns of a conversation, passages that their answers rest on, and a new question. {_ON_TURNS}
Reply with one JSON object and nothing else: {{"question": string, "useful": [numbers], "answer": string}}.
- question: the new question, rewritten so that it is understood without the conversation: name what it refers to, use
  no pronoun that points back, change nothing else, and write in its language.
- useful: the numbers of the passages that hold a fact that is needed to answer it; [] if none does.
- answer: the answer from turns and passages only, as short as possible: a name, a number with its unit, a date, yes or
  no; in the language of the question. "" unless turns and passages hold everything that the answer needs."""

CONDENSE_SYSTEM = f"""\
Below are the earlier turns of a conversation and a new question. {_ON_TURNS}
Rewrite the new question so that it is understood without the conversation: name what it refers to, use no pronoun that
points back, change nothing else. Do not answer it. Write in the language of the question. Reply with the question
only."""

KNOWLEDGE_SYSTEM = f"""\
No document answers the last question of a conversation. Answer it from the conversation and from what you know. A line
"{UNDERSTOOD.strip()}" below a question is a guess at what the user meant, and may be wrong. Reply with the answer
alone, as short as possible. Write in the language of the question. If you do not know, reply exactly:
{REFUSAL}"""

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


def both_forms(query: str, standalone: str) -> str:
    """Return a question in the user's words, with its interpretation below if that differs."""
    if not standalone or standalone == query:
        return query
    return f"{query}\n{UNDERSTOOD}{as_line(standalone)}"


def render_turns(turns: Iterable[QaPair], *, summary: str = "") -> str:
    """Render earlier turns with their numbers and interpretations, after ``summary``."""
    lines = [f"Summary of the turns before:\n{as_material(summary)}"] if summary else []
    return "\n\n".join([*lines, *map(_rendered_turn, turns)])


def _rendered_turn(turn: QaPair) -> str:
    question = both_forms(as_material(turn["query"]), as_material(turn["standalone_query"]))
    return f"Turn {turn['turn_number']}\nQ: {question}\nA: {as_material(turn['answer'])}"


def render_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """Render (question, answer) pairs as the history of a prompt."""
    return "\n\n".join(f"Q: {question}\nA: {answer}" for question, answer in pairs)


SELECT = Prompt(
    name="select_turns",
    about="which earlier turns a question needs; JSON with turns",
    system=SELECT_SYSTEM,
    user="Earlier turns:\n{history}\n\nNew question: {query}",
    is_json=True,
)
ASSESS = Prompt(
    name="assess_history",
    about="what earlier turns and their passages give to a question; JSON with question, useful and answer",
    system=ASSESS_SYSTEM,
    user="Earlier turns:\n{history}\n\nPassages:\n{passages}\n\nNew question: {query}",
    is_json=True,
)
CONDENSE = Prompt(
    name="condense",
    about="the question as it stands alone; the reply is the question",
    system=CONDENSE_SYSTEM,
    user="Earlier turns:\n{history}\n\nNew question: {query}",
)
KNOWLEDGE = Prompt(
    name="answer_from_knowledge",
    about="answer from conversation and general knowledge, below the earlier turns as messages",
    system=KNOWLEDGE_SYSTEM,
    user="{query}",
)
SUMMARY = Prompt(
    name="fold_summary",
    about="one summary of the last summary and the turns after it; the reply is the summary",
    system=SUMMARY_SYSTEM,
    user="{history}",
)
SMALL_TALK = Prompt(
    name="direct_answer",
    about="is a message small talk? JSON with small_talk and reply",
    system=SMALL_TALK_SYSTEM,
    user="Message: {query}",
    is_json=True,
)
ROUTE = Prompt(
    name="web_or_rag",
    about="where to search; JSON with route, rag or web",
    system=ROUTE_SYSTEM,
    user="Question: {query}",
    is_json=True,
)


def select_messages(history: str, query: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask which turns matter (``SelectionReply``)."""
    return prompts.messages(SELECT, history=history, query=query)


def assess_messages(history: str, passages: str, query: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask what turns and passages contribute to a question (``AssessmentReply``)."""
    return prompts.messages(ASSESS, history=history, passages=passages, query=query)


def condense_messages(history: str, query: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for the question as it stands alone, in plain text."""
    return prompts.messages(CONDENSE, history=history, query=query)


def summary_messages(history: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for one summary of a summary and the turns after it."""
    return prompts.messages(SUMMARY, history=history)


def small_talk_messages(query: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask whether a message is small talk (``SmallTalkReply``)."""
    return prompts.messages(SMALL_TALK, query=query)


def route_messages(query: str, prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask where to search (``RouteReply``)."""
    return prompts.messages(ROUTE, query=query)


CONVERSATION_VERSION = version_of(
    SELECT_SYSTEM,
    ASSESS_SYSTEM,
    CONDENSE_SYSTEM,
    KNOWLEDGE_SYSTEM,
    DIGEST_SYSTEM,
    SUMMARY_SYSTEM,
    SMALL_TALK_SYSTEM,
    ROUTE_SYSTEM,
)
"""Version of all instructions of a conversation."""
CONVERSATION_PROMPTS = PromptGroup(
    prompts=(SELECT, ASSESS, CONDENSE, KNOWLEDGE, DIGEST, SUMMARY, SMALL_TALK, ROUTE, READER),
    version=CONVERSATION_VERSION,
)
"""Prompts of a turn's own calls; the reader answers from the web."""
