"""``judgetree chat``: follow-up questions in a saved conversation."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ...graphs.config.conversing import FromHistory
from ...graphs.config.rag_config import RagConfig
from ...modules.errors import SettingsError
from ..terminal.terminal import busy, say, write_result
from .config_options import OLDER, takes
from .options import Collection, CondenseLlm, PromptsNoThinking, PromptsThinking, Record, System

if TYPE_CHECKING:
    from ...graphs.conversations import Conversations
    from ...modules.settings import Settings
    from ..chat.turn_view import StatusLine

_FLAGS = {"set_keys": "--set", "config_file": "--config"}
_NOT_REPEATED = ("collection", "conversation", "switch_collection", "as_json")


@takes(RagConfig)
def chat(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    *,
    collection: Collection = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel="Conversation",
            help="Conversation to start or continue; default: a new one.",
        ),
    ] = None,
    system: System = None,
    condense_llm: CondenseLlm = None,
    prompts_thinking: PromptsThinking = None,
    prompts_no_thinking: PromptsNoThinking = None,
    answer_from_history: Annotated[
        FromHistory | None,
        typer.Option(
            rich_help_panel="Conversation",
            help="Whether earlier turns may answer: once the judge confirms it, never, or on trust. Default assessed.",
        ),
    ] = None,
    direct_answer: Annotated[
        bool,
        typer.Option(
            "--direct-answer",
            rich_help_panel="Conversation",
            help="Answer small talk without a search; costs one more call a turn.",
        ),
    ] = False,
    web_or_rag: Annotated[
        bool,
        typer.Option(
            "--web-or-rag",
            rich_help_panel="Conversation",
            help="Let the model choose between the web (JUDGETREE_SEARXNG_URL) and the documents.",
        ),
    ] = False,
    answer_without_evidence: Annotated[
        bool,
        typer.Option(
            "--answer-without-evidence",
            rich_help_panel="Conversation",
            help="Where no document answers, answer from general knowledge.",
        ),
    ] = False,
    summary_memory: Annotated[
        bool,
        typer.Option(
            "--summary-memory", rich_help_panel="Conversation", help="Summarise turns that are too old for a prompt."
        ),
    ] = False,
    switch_collection: Annotated[
        bool,
        typer.Option(
            "--switch-collection",
            rich_help_panel="Conversation",
            help="Continue in another collection, without evidence of the old one.",
        ),
    ] = False,
    record: Record = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a JSON document on a line.")] = False,
    config: RagConfig,
) -> None:
    """Ask questions and follow-up questions; a pipe has one question per line. /help lists the commands.

    Examples:
        judgetree chat -c handbook
        judgetree chat -c handbook --conversation oils
    """
    with busy():
        from ...graphs.conversation.turn.context import ConversationOptions
        from ...graphs.conversations import Conversations
        from ...modules.settings import load_settings
        from ..chat.turn_view import StatusLine

    settings = load_settings().with_models(condense_llm=condense_llm, record=record)
    if not collection and system != "llm" and config.retriever is None:
        raise SettingsError("Name a collection with -c NAME; `judgetree collections` lists them.")
    name = new_name() if conversation is None else conversation
    status = StatusLine()
    with Conversations(
        collection or "",
        config=config,
        system=system or "judge",
        options=ConversationOptions(
            answer_from_history=answer_from_history or "assessed",
            direct_answer=direct_answer,
            web_or_rag=web_or_rag,
            answer_without_evidence=answer_without_evidence,
            summary_memory=summary_memory,
            prompts_thinking=prompts_thinking,
            prompts_no_thinking=prompts_no_thinking,
            switch_collection=switch_collection,
        ),
        settings=settings,
        on_progress=status.on_progress,
    ) as conversations:
        exit_status = _lead(conversations, name, settings, status, options=context.params)
    raise typer.Exit(exit_status)


def _lead(
    conversations: Conversations, name: str, settings: Settings, status: StatusLine, *, options: Mapping[str, object]
) -> int:
    """Lead the conversation of a name until its input ends; returns the exit status."""
    from ..chat.session import ChatSession
    from ..chat.slash_commands import ChatCommands
    from ..chat.turn_view import JsonTurn, ShownTurn
    from ..terminal.typed_lines import TypedLines

    status.show("opening the collection and the conversation")
    try:
        conversations.prepare()  # before the first question, so that a wrong setting is reported at once
    finally:
        status.clear()
    lines, talk, as_json = TypedLines(), conversations.conversation(name), options["as_json"] is True
    commands = ChatCommands(talk, settings, write=say if as_json else write_result)
    if lines.is_typed:
        say(f"Conversation {name}. /help lists the commands.", style="dim")
    try:
        return ChatSession(talk=talk, commands=commands, lines=lines, new_view=JsonTurn if as_json else ShownTurn).run()
    finally:
        if settings.checkpoint_url != "memory:" and talk.branches():
            say(f"come back: {command_to_return(name, options)}", style="dim")


def new_name() -> str:
    """Make a name that no other conversation has: the day and six random characters."""
    return f"chat-{datetime.now():%Y%m%d}-{uuid.uuid4().hex[:6]}"


def command_to_return(name: str, options: Mapping[str, object]) -> str:
    """Return the command that continues a conversation with the same options; a collection is switched only once."""
    from ...modules.settings import without_secrets

    words = ["judgetree", "chat"]
    rest = {
        option.removesuffix(OLDER): value
        for option, value in options.items()
        if option not in _NOT_REPEATED and value not in (None, [], ())
    }
    for option, value in {"c": options.get("collection"), "conversation": name, **rest}.items():
        flag = f"-{option}" if len(option) == 1 else _FLAGS.get(option, f"--{option.replace('_', '-')}")
        if value is False and option in RagConfig.model_fields:
            words.append(f"--no-{flag[2:]}")
        elif value is not None and value is not False:
            given = value if isinstance(value, tuple | list) else [value]
            words += (
                [flag] if value is True else [word for each in given for word in (flag, without_secrets(str(each)))]
            )
    return shlex.join(words)
