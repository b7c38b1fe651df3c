"""Replies of the scripted model in conversations: needed turns, answers from history, stand-alone questions.

Such requests count as kind "other". The replies are those of an ideal model that knows the dialogues of a file, as in
``answers``. It uses only what a prompt shows: a question outside the dialogues, or without its earlier turns, stands
alone.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from ...evaluation.datasets.standards_dialogues import Dialogue, WrittenTurn, path_of, standalone_question
from ...evaluation.datasets.standards_qa import Question
from ...modules.calls.messages import Message
from ...modules.calls.prompts import DEFAULT_PROMPTS, Prompts
from ...modules.judge.prompts import insert_block_messages
from ...modules.memory.prompts import (
    KNOWLEDGE,
    UNDERSTOOD,
    assess_messages,
    condense_messages,
    route_messages,
    select_messages,
    small_talk_messages,
    summary_messages,
)
from ...modules.reader.prompts import REFUSAL, digest_messages
from ...modules.reader.refusals import is_refusal
from .answers import ChatReply, ScriptedAnswers
from .templates import QUERY, Template, find_script, scripts_for, template_of

_TURN = re.compile(
    rf"^(?:Turn (\d+)\n)?Q: (.*?)(?:\n{UNDERSTOOD}(.*?))?\nA: (.*?)(?=\n\n(?:Turn \d+\n)?Q: |\Z)",
    re.DOTALL | re.MULTILINE,
)
_PASSAGE = re.compile(r"^\[(\d+)\] (.*?)(?=^\[\d+\] |\Z)", re.DOTALL | re.MULTILINE)
_NOTE = re.compile(r"^(.+) \[(\d+)\]$", re.MULTILINE)
_LABELS = re.compile(rf"^(?:Turn \d+\n|Summary of the turns before:\n|[QA]: |{UNDERSTOOD})", re.MULTILINE)
_GREETING = re.compile(
    r"\W*(?:(?:hello|hi|hey|good (?:morning|evening)|thanks|thank you|bye|goodbye)\b|你好|您好|谢谢|再见)",
    re.IGNORECASE,
)


class _Shown(NamedTuple):
    """One earlier turn in a prompt."""

    number: int | None
    """Turn number; None in a history without numbers."""
    question: str
    understood: str
    """Stand-alone form of the question; the question itself without one."""
    answer: str


@dataclass(frozen=True, kw_only=True)
class _History:
    """The earlier turns in a prompt."""

    text: str

    @cached_property
    def turns(self) -> list[_Shown]:
        """Turns shown one by one, in order."""
        found = _TURN.finditer(self.text)
        return [
            _Shown(int(match[1]) if match[1] else None, match[2], match[3] or match[2], match[4].strip())
            for match in found
        ]

    def tells_of(self, turn: WrittenTurn) -> bool:
        """Return whether the prompt shows a turn, or its summary contains it."""
        return any(_is_asked(turn, shown) for shown in self.turns) or turn.standalone in self.text

    def numbers_of(self, turns: Iterable[WrittenTurn]) -> list[int]:
        """Return the numbers of the turns; a turn in the summary alone counts as the newest shown turn."""
        numbers: set[int] = set()
        for turn in turns:
            own = [shown for shown in self.turns if _is_asked(turn, shown)]
            beside = self.turns[-1:] if self.tells_of(turn) else []
            numbers.update(shown.number for shown in own or beside if shown.number is not None)
        return sorted(numbers)


class _Understood(NamedTuple):
    """A question of a dialogue with the earlier turns that it needs."""

    turn: WrittenTurn
    needed: tuple[WrittenTurn, ...]


class ScriptedConversation:
    """An ideal conversation model for the dialogues of one file. Replies are pure functions of the prompt."""

    def __init__(self, answers: ScriptedAnswers, dialogues: Iterable[Dialogue] = ()) -> None:
        """``answers`` must know the stand-alone questions of the dialogues (``standalone_questions``)."""
        self.answers = answers
        self._turns: defaultdict[str, list[tuple[Dialogue, WrittenTurn]]] = defaultdict(list)
        for dialogue in dialogues:
            for turn in dialogue.turns:
                self._turns[_key(turn.question)].append((dialogue, turn))

    def understand(self, query: str, history: _History) -> _Understood | None:
        """Find the turn of a dialogue that the query is, given the history; None without a turn that depends on it."""
        found, most = None, 0
        for dialogue, turn in self._turns.get(_key(query), ()):
            known = sum(history.tells_of(earlier) for earlier in path_of(dialogue, turn.turn)[:-1])
            if turn.is_follow_up and known > most:
                needed = tuple(dialogue.turns[number - 1] for number in turn.relevant_turns)
                found, most = _Understood(turn, needed), known
        return found

    def standalone(self, query: str, history: _History) -> str:
        """Return the stand-alone form of the query."""
        understood = self.understand(query, history)
        return understood.turn.standalone if understood else query

    def answer(self, query: str, history: _History, passages: str) -> str:
        """Return the gold answer if turns and passages contain all needed facts, else the refusal."""
        standalone = self.standalone(query, history)
        for shown in history.turns:
            if _key(standalone) in (_key(shown.question), _key(shown.understood)) and not is_refusal(shown.answer):
                return shown.answer
        return self.answers.read(standalone, f"{history.text}\n\n{passages}")

    def needed_quotes(self, query: str) -> list[str]:
        """List the quotes that answer the query in any dialogue."""
        return [fact.quote for _, turn in self._turns.get(_key(query), ()) for fact in turn.supporting]


def standalone_questions(dialogues: Iterable[Dialogue]) -> list[Question]:
    """Make a row of the stand-alone question of every turn."""
    return [standalone_question(dialogue, turn.turn) for dialogue in dialogues for turn in dialogue.turns]


def conversation_reply(
    talk: ScriptedConversation,
    messages: Sequence[Message],
    *,
    knows_by_heart: bool = False,
    prompts: Prompts = DEFAULT_PROMPTS,
) -> ChatReply | None:
    """Reply to a prompt of ``modules.memory.prompts``; None for any other.

    Raises:
        PromptMismatch: The system message is judgetree's, but the user message does not follow its template.
    """
    for template in scripts_for(_knowledge, prompts):
        if (asked := _asked_below_history(messages, template)) is not None:
            return ChatReply(text=talk.answers.recall(asked) if knows_by_heart else REFUSAL)
    found = find_script(scripts_for(_scripts, prompts), messages)
    if found is None:
        return None
    reply, shown = found
    history = _History(text=shown.get("history", ""))
    return ChatReply(text=reply(talk, shown.get("query", ""), history, shown.get("passages", "")))


def _asked_below_history(messages: Sequence[Message], template: Template) -> str | None:
    """Return the question of a prompt whose opening is followed by earlier turns; None for another prompt."""
    system, known = messages[:1], template.opening[:1]
    if not system or not known or system[0][0] != known[0][0] or not system[0][1].startswith(known[0][1]):
        return None
    asked = template.user.fullmatch(messages[-1][1])
    return asked["query"] if asked else None


_Reply = Callable[[ScriptedConversation, str, _History, str], str]
"""Reply to a prompt, from the model's knowledge, the query, the history and the passages."""


def _select(talk: ScriptedConversation, query: str, history: _History, _: str) -> str:
    understood = talk.understand(query, history)
    return json.dumps({"turns": history.numbers_of(understood.needed) if understood else []})


def _assess(talk: ScriptedConversation, query: str, history: _History, passages: str) -> str:
    standalone = talk.standalone(query, history)
    useful = [number for number, text in _numbered(passages) if talk.answers.facts_in(standalone, text)]
    answer = talk.answer(query, history, passages)
    return _json({"question": standalone, "useful": useful, "answer": "" if answer == REFUSAL else answer})


def _condense(talk: ScriptedConversation, query: str, history: _History, _: str) -> str:
    return talk.standalone(query, history)


def _digest(talk: ScriptedConversation, query: str, _: _History, passages: str) -> str:
    """List the needed quotes, one per line, each with the number of its passage; ``""`` without any."""
    quotes = list(dict.fromkeys(talk.needed_quotes(query)))
    held = [f"{quote} [{number}]" for number, text in _numbered(passages) for quote in quotes if _holds(text, quote)]
    return "\n".join(held)


def _small_talk(talk: ScriptedConversation, query: str, _: _History, __: str) -> str:
    is_small = _GREETING.match(query) is not None and not query.rstrip().endswith(("?", "？"))
    reply = "Hello! What would you like to know?" if query.isascii() else "您好，请问想查什么？"
    return _json({"small_talk": is_small, "reply": reply if is_small else ""})


def _route(talk: ScriptedConversation, query: str, _: _History, __: str) -> str:
    return json.dumps({"route": "rag"})


def _summary(talk: ScriptedConversation, _: str, history: _History, __: str) -> str:
    """Repeat all questions and answers word for word, without labels and empty lines."""
    return "\n".join(line for line in _LABELS.sub("", history.text).split("\n") if line.strip())


def _insert_block(talk: ScriptedConversation, query: str, _: _History, passage: str) -> str:
    """Say whether a passage holds a needed fact, with the quote of the first."""
    quotes = talk.answers.quotes_in(query, passage)
    reason = "It holds a needed fact." if quotes else "It holds none of the facts that are needed."
    return _json({"belongs": bool(quotes), "key_passage": next(iter(quotes), ""), "reason": reason})


def _numbered(passages: str) -> list[tuple[int, str]]:
    """Parse passages by number, from evidence, or from a digest with the number behind each fact."""
    found = [(int(match[1]), match[2]) for match in _PASSAGE.finditer(passages)]
    return found or [(int(match[2]), match[1]) for match in _NOTE.finditer(passages)]


def _is_asked(turn: WrittenTurn, shown: _Shown) -> bool:
    asked = {_key(turn.question), _key(turn.standalone)}
    return not asked.isdisjoint((_key(shown.question), _key(shown.understood)))


def _holds(passage: str, quote: str) -> bool:
    return " ".join(quote.split()) in " ".join(passage.split())


def _key(question: str) -> str:
    return " ".join(question.split()).casefold()


def _json(reply: Mapping[str, object]) -> str:
    return json.dumps(reply, ensure_ascii=False)


_TURNS, _PASSAGES = "FIELDturnsFIELD", "FIELDpassagesFIELD"
_GROUPS = {_TURNS: "(?P<history>.*?)", _PASSAGES: "(?P<passages>.*)", QUERY: "(?P<query>.*)"}
_BUILT_BY = "judgetree.modules.memory.prompts"


@cache
def _scripts(prompts: Prompts) -> list[tuple[Template, _Reply]]:
    built: tuple[tuple[list[Message], _Reply], ...] = (
        (select_messages(_TURNS, QUERY, prompts), _select),
        (assess_messages(_TURNS, _PASSAGES, QUERY, prompts), _assess),
        (condense_messages(_TURNS, QUERY, prompts), _condense),
        (digest_messages(_PASSAGES, QUERY, prompts), _digest),
        (summary_messages(_TURNS, prompts), _summary),
        (small_talk_messages(QUERY, prompts), _small_talk),
        (route_messages(QUERY, prompts), _route),
        (insert_block_messages(QUERY, _PASSAGES, prompts), _insert_block),
    )
    return [(template_of(messages, _GROUPS, built_by=_BUILT_BY), reply) for messages, reply in built]


@cache
def _knowledge(prompts: Prompts) -> list[Template]:
    return [template_of(prompts.messages(KNOWLEDGE, query=QUERY), _GROUPS, built_by=_BUILT_BY)]
