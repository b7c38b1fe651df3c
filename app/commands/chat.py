"""``judgetree chat``: questions that lean on each other, in a conversation that is kept."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ...modules.errors import SettingsError
from ..terminal.terminal import busy, say, write_result
from .options import Collection, MaxDepth, StrategyName, SystemName, TopK

if TYPE_CHECKING:
    from ...graphs.conversation.conversations import Conversations
    from ...modules.settings import Settings

# Copied, as in ``options``.
FromHistoryName = Literal["assessed", "never", "trust"]


@dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """How a conversation is led. None: the default."""

    collection: str | None = None
    system: SystemName | None = None
    topk: int | None = None
    max_depth: int | None = None
    strategy: StrategyName | None = None
    answer_from_history: FromHistoryName | None = None
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


def chat(  # noqa: PLR0913 - one parameter an option
    *,
    collection: Collection = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Conversation to begin or to go on with; default: a new one.")
    ] = None,
    system: Annotated[SystemName | None, typer.Option(help="How documents are searched; default judge.")] = None,
    topk: TopK = None,
    max_depth: MaxDepth = None,
    strategy: Annotated[StrategyName | None, typer.Option(help="As in ask. Default stuff.")] = None,
    answer_from_history: Annotated[
        FromHistoryName | None,
        typer.Option(help="Earlier turns answer once the judge confirms it, never, or on trust. Default assessed."),
    ] = None,
    direct_answer: Annotated[
        bool, typer.Option("--direct-answer", help="Answer small talk without a search; a call more a turn.")
    ] = False,
    web_or_rag: Annotated[
        bool, typer.Option("--web-or-rag", help="Let the model choose web or documents (JUDGETREE_SEARXNG_URL).")
    ] = False,
    answer_without_evidence: Annotated[
        bool,
        typer.Option("--answer-without-evidence", help="Where no document answers, answer from general knowledge."),
    ] = False,
    summary_memory: Annotated[
        bool, typer.Option("--summary-memory", help="Sum up turns that are too old for a prompt.")
    ] = False,
    switch_collection: Annotated[
        bool, typer.Option("--switch-collection", help="Go on in another collection, without the old one's evidence.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a JSON document on a line.")] = False,
) -> None:
    """Talk: questions that lean on each other. From a pipe, one question a line. /help lists what else can be said."""
    with busy("starting"):
        from ...modules.settings import load_settings
        from ..chat.session import ChatInput, ChatSession
        from ..chat.slash_commands import ChatCommands
        from ..chat.turn_view import JsonTurn, ShownTurn

    settings = load_settings()
    if not collection and system != "llm":
        raise SettingsError("Name a collection with -c NAME; `judgetree collections` lists them.")
    options = ChatOptions(
        collection=collection,
        system=system,
        topk=topk,
        max_depth=max_depth,
        strategy=strategy,
        answer_from_history=answer_from_history,
        direct_answer=direct_answer,
        web_or_rag=web_or_rag,
        answer_without_evidence=answer_without_evidence,
        summary_memory=summary_memory,
        switch_collection=switch_collection,
    )
    name = new_name() if conversation is None else conversation
    lines = ChatInput()
    with _opened(options, settings) as conversations:
        talk = conversations.conversation(name)
        commands = ChatCommands(talk, settings, write=say if as_json else write_result)
        if lines.is_typed:
            say(f"Conversation {name}. /help lists what can be said besides questions.", style="dim")
        try:
            status = ChatSession(talk, commands, lines, new_view=JsonTurn if as_json else ShownTurn).run()
        finally:
            if settings.checkpoint_url != "memory:" and talk.branches():
                say(f"come back: {options.command(name)}", style="dim")
    raise typer.Exit(status)


def new_name() -> str:
    """A name that no other conversation has: the day, and some characters."""
    return f"chat-{datetime.now():%Y%m%d}-{uuid.uuid4().hex[:6]}"


@contextmanager
def _opened(options: ChatOptions, settings: Settings) -> Iterator[Conversations]:
    """The conversations with all their services, opened before the first question, so that a mistake is told at once.

    Raises:
        UserError: Something to mend.
    """
    with busy("starting"):
        from ...graphs.conversation.conversations import Conversations
        from ...graphs.conversation.turn.context import ConversationOptions
        from ...graphs.threads.context import Limits
        from ..chat.turn_view import StatusLine

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
