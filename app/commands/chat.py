"""``judgetree chat``: questions that lean on each other, in a conversation that is kept."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from ...graphs.conversation.conversations import Conversations
from ...graphs.conversation.turn.context import ConversationOptions, FromHistory
from ...graphs.rag.result import SystemName
from ...graphs.threads.context import Limits
from ...modules.errors import SettingsError
from ...modules.reader.strategies import AnswerStrategy
from ...modules.settings import Settings, load_settings
from ..chat.session import ChatInput, ChatSession
from ..chat.slash_commands import ChatCommands
from ..chat.turn_view import JsonTurn, ShownTurn, StatusLine
from ..terminal.terminal import say, write_result


@dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """How a conversation is led. None: the default."""

    collection: str | None = None
    system: SystemName | None = None
    topk: int | None = None
    max_depth: int | None = None
    strategy: AnswerStrategy | None = None
    answer_from_history: FromHistory | None = None
    direct_answer: bool = False
    web_or_rag: bool = False
    answer_without_evidence: bool = False
    summary_memory: bool = False
    switch_collection: bool = False

    def command(self, name: str) -> str:
        """The command that goes on with a conversation in the same way."""
        words = ["judgetree", "chat"]
        for option, value in {"c": self.collection, "conversation": name, **self._flags()}.items():
            flag = f"-{option}" if len(option) == 1 else f"--{option.replace('_', '-')}"
            if value is not None and value is not False:
                words += [flag] if value is True else [flag, str(value)]
        return shlex.join(words)

    def _flags(self) -> dict[str, str | int | bool | None]:
        return {name: value for name, value in vars(self).items() if name not in ("collection", "switch_collection")}


def run_chat(options: ChatOptions, *, name: str | None, as_json: bool) -> int:
    """Talk until the input ends. 0, or 1 if a turn failed and nobody was there to see it.

    Args:
        options: How the conversation is led.
        name: Name of the conversation, be it new or not; None makes a new one.
        as_json: Write each event as a JSON document on a line.

    Raises:
        UserError: Something to mend.
        KeyboardInterrupt: Ctrl-C where the input is a pipe; how to come back has been said.
    """
    settings = load_settings()
    if not options.collection and options.system != "llm":
        raise SettingsError("Name a collection with -c NAME; `judgetree collections` lists them.")
    name = new_name() if name is None else name
    lines = ChatInput()
    with _opened(options, name, settings) as conversations:
        talk = conversations.conversation(name)
        commands = ChatCommands(talk, settings, tell=say if as_json else write_result)
        if lines.is_typed:
            say(f"Conversation {name}. /help lists what can be said besides questions.", style="dim")
        try:
            session = ChatSession(talk, commands, lines, new_view=JsonTurn if as_json else ShownTurn)
            return session.run()
        finally:
            if settings.checkpoint_url != "memory:" and talk.branches():
                say(f"come back: {options.command(name)}", style="dim")


def new_name() -> str:
    """A name that no other conversation has: the day, and some characters."""
    return f"chat-{datetime.now():%Y%m%d}-{uuid.uuid4().hex[:6]}"


@contextmanager
def _opened(options: ChatOptions, name: str, settings: Settings) -> Iterator[Conversations]:
    """The conversations with all their services, opened before the first question, so that a mistake is told at once.

    Raises:
        UserError: Something to mend.
    """
    status = StatusLine()
    status.show("opening")
    usual = Limits()
    try:
        with Conversations(
            options.collection or "",
            system=options.system or "judge",
            topk=3 if options.topk is None else options.topk,
            strategy=options.strategy or "stuff",
            limits=Limits(max_rec_depth=usual.max_rec_depth if options.max_depth is None else options.max_depth),
            options=ConversationOptions(
                answer_from_history=options.answer_from_history or "assessed",
                direct_answer=options.direct_answer,
                web_or_rag=options.web_or_rag,
                answer_without_evidence=options.answer_without_evidence,
                summary_memory=options.summary_memory,
                switch_collection=options.switch_collection,
            ),
            settings=settings,
            on_progress=status.on_progress,
        ) as conversations:
            conversations.prepare()
            status.clear()
            yield conversations
    finally:
        status.clear()
