"""What the scripted model writes to lead conversations: which turns matter, what they give, what is asked by itself.

Such requests count as kind "other". As in ``scripted_answers`` the replies are those of an ideal model that knows the
dialogues of a file. It goes by what a prompt shows, be that little: a turn that is not shown is not known to it. Of a
question that stands in no dialogue, or of which no earlier turn is shown, it says that it stands alone.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...evaluation.datasets.standards_dialogues import Dialogue, WrittenTurn, path_of, standalone_question
from ...evaluation.datasets.standards_qa import Question
from ...modules.calls.messages import Message
from ...modules.memory.prompts import (
    KNOWLEDGE_SYSTEM,
    SUMMARY_SYSTEM,
    UNDERSTOOD,
    assess_messages,
    condense_messages,
    route_messages,
    select_messages,
    small_talk_messages,
)
from ...modules.reader.prompts import REFUSAL, digest_messages
from ...modules.reader.refusals import is_refusal
from .answers import ChatReply, PromptMismatch, ScriptedAnswers

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
    """One earlier turn as a prompt shows it."""

    number: int | None
    """None where the history was written down without numbers."""
    question: str
    understood: str
    """How it was understood; the same where nothing is said of that."""
    answer: str


@dataclass(frozen=True, kw_only=True)
class _History:
    """The earlier turns of a prompt."""

    text: str

    @cached_property
    def turns(self) -> list[_Shown]:
        """Those that are shown one by one, in their order."""
        found = _TURN.finditer(self.text)
        return [
            _Shown(int(match[1]) if match[1] else None, match[2], match[3] or match[2], match[4].strip())
            for match in found
        ]

    def tells_of(self, turn: WrittenTurn) -> bool:
        """Whether a turn is shown, or stands in the summary."""
        return any(_is_asked(turn, shown) for shown in self.turns) or turn.standalone in self.text

    def numbers_of(self, turns: Iterable[WrittenTurn]) -> list[int]:
        """Numbers of the turns; of one that only the summary tells of, that of the newest turn: it brings it along."""
        numbers: set[int] = set()
        for turn in turns:
            own = [shown for shown in self.turns if _is_asked(turn, shown)]
            beside = self.turns[-1:] if self.tells_of(turn) else []
            numbers.update(shown.number for shown in own or beside if shown.number is not None)
        return sorted(numbers)


class _Understood(NamedTuple):
    """A question of a dialogue, by the turns before it."""

    turn: WrittenTurn
    needed: tuple[WrittenTurn, ...]


class ScriptedTalk:
    """The ideal leader of conversations for the dialogues of one file. Replies are pure functions of the prompt."""

    def __init__(self, answers: ScriptedAnswers, dialogues: Iterable[Dialogue] = ()) -> None:
        """``answers`` must know the stand-alone questions of the dialogues; see ``standalone_questions``."""
        self.answers = answers
        self._turns: defaultdict[str, list[tuple[Dialogue, WrittenTurn]]] = defaultdict(list)
        for dialogue in dialogues:
            for turn in dialogue.turns:
                self._turns[_key(turn.question)].append((dialogue, turn))

    def understand(self, query: str, history: _History) -> _Understood | None:
        """The turn of a dialogue that the query is, after these turns; None if it is none, or leans on none of them."""
        found, most = None, 0
        for dialogue, turn in self._turns.get(_key(query), ()):
            known = sum(history.tells_of(earlier) for earlier in path_of(dialogue, turn.turn)[:-1])
            if turn.is_follow_up and known > most:
                needed = tuple(dialogue.turns[number - 1] for number in turn.relevant_turns)
                found, most = _Understood(turn, needed), known
        return found

    def standalone(self, query: str, history: _History) -> str:
        """The query as it stands alone."""
        understood = self.understand(query, history)
        return understood.turn.standalone if understood else query

    def answer(self, query: str, history: _History, passages: str) -> str:
        """The gold answer if turns and passages hold all it needs, else the refusal."""
        standalone = self.standalone(query, history)
        for shown in history.turns:
            if _key(standalone) in (_key(shown.question), _key(shown.understood)) and not is_refusal(shown.answer):
                return shown.answer
        return self.answers.read(standalone, f"{history.text}\n\n{passages}")

    def needed_quotes(self, query: str) -> list[str]:
        """What the query needs to be answered, in whichever dialogue it is asked."""
        return [fact.quote for _, turn in self._turns.get(_key(query), ()) for fact in turn.supporting]


def standalone_questions(dialogues: Iterable[Dialogue]) -> list[Question]:
    """The stand-alone question of every turn, as a row of its own."""
    return [standalone_question(dialogue, turn.turn) for dialogue in dialogues for turn in dialogue.turns]


def conversation_reply(
    talk: ScriptedTalk, messages: Sequence[Message], *, knows_by_heart: bool = False
) -> ChatReply | None:
    """The reply to a prompt of ``modules.memory.prompts``; None for any other.

    Raises:
        PromptMismatch: The system message is one of ours, but the user message does not follow its template.
    """
    system = next((text for role, text in messages if role == "system"), "")
    users = [text for role, text in messages if role == "user"] or [""]
    if system.startswith(KNOWLEDGE_SYSTEM):
        return ChatReply(text=talk.answers.recall(users[-1]) if knows_by_heart else REFUSAL)
    if system == SUMMARY_SYSTEM:
        return ChatReply(text=_summary(users[0]))
    script = _SCRIPTS.get(system)
    if script is None:
        return None
    match = script.pattern.fullmatch(users[0])
    if match is None:
        raise PromptMismatch(
            f"The user message does not follow the template that belongs to its system message: {users[0][:80]!r}. "
            "Build it with the functions of judgetree.modules.memory.prompts."
        )
    shown = {"history": "", "passages": "", **match.groupdict()}
    return ChatReply(text=script.reply(talk, shown["query"], _History(text=shown["history"]), shown["passages"]))


_Reply = Callable[[ScriptedTalk, str, _History, str], str]


class _Script(NamedTuple):
    """How one kind of prompt is taken apart and answered."""

    pattern: re.Pattern[str]
    """Of the user message, with the group ``query``, maybe ``history`` and ``passages``."""
    reply: _Reply


def _select(talk: ScriptedTalk, query: str, history: _History, _: str) -> str:
    understood = talk.understand(query, history)
    return json.dumps({"turns": history.numbers_of(understood.needed) if understood else []})


def _assess(talk: ScriptedTalk, query: str, history: _History, passages: str) -> str:
    standalone = talk.standalone(query, history)
    useful = [number for number, text in _numbered(passages) if talk.answers.facts_in(standalone, text)]
    answer = talk.answer(query, history, passages)
    return _json({"question": standalone, "useful": useful, "answer": "" if answer == REFUSAL else answer})


def _condense(talk: ScriptedTalk, query: str, history: _History, _: str) -> str:
    return talk.standalone(query, history)


def _digest(talk: ScriptedTalk, query: str, _: _History, passages: str) -> str:
    """The needed quotes, a line each, behind each the number of its passage; ``""`` if there is none."""
    quotes = list(dict.fromkeys(talk.needed_quotes(query)))
    held = [f"{quote} [{number}]" for number, text in _numbered(passages) for quote in quotes if _holds(text, quote)]
    return "\n".join(held)


def _small_talk(talk: ScriptedTalk, query: str, _: _History, __: str) -> str:
    is_small = _GREETING.match(query) is not None and not query.rstrip().endswith(("?", "？"))
    reply = "Hello! What would you like to know?" if query.isascii() else "您好，请问想查什么？"
    return _json({"small_talk": is_small, "reply": reply if is_small else ""})


def _route(talk: ScriptedTalk, query: str, _: _History, __: str) -> str:
    return json.dumps({"route": "rag"})


def _summary(shown: str) -> str:
    """All that was shown, questions and answers word for word, without its labels and empty lines."""
    return "\n".join(line for line in _LABELS.sub("", shown).split("\n") if line.strip())


def _numbered(passages: str) -> list[tuple[int, str]]:
    """Passages by number: as evidence has them, or from a digest, which has the number behind each fact."""
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


_QUERY, _TURNS, _PASSAGES = "FIELDqueryFIELD", "FIELDturnsFIELD", "FIELDpassagesFIELD"


def _pattern(messages: list[Message]) -> tuple[str, re.Pattern[str]]:
    """System message, and a pattern of the user message, which ends with the query."""
    (_, system), (_, user) = messages
    pattern = re.escape(user).replace(_TURNS, "(?P<history>.*?)").replace(_PASSAGES, "(?P<passages>.*)")
    return system, re.compile(pattern.replace(_QUERY, "(?P<query>.*)"), re.DOTALL)


def _scripts() -> Mapping[str, _Script]:
    replies: tuple[tuple[list[Message], _Reply], ...] = (
        (select_messages(_TURNS, _QUERY), _select),
        (assess_messages(_TURNS, _PASSAGES, _QUERY), _assess),
        (condense_messages(_TURNS, _QUERY), _condense),
        (digest_messages(_PASSAGES, _QUERY), _digest),
        (small_talk_messages(_QUERY), _small_talk),
        (route_messages(_QUERY), _route),
    )
    patterns = ((_pattern(messages), reply) for messages, reply in replies)
    return {system: _Script(pattern, reply) for (system, pattern), reply in patterns}


_SCRIPTS = _scripts()
