"""Conversations that earlier chats have left, opened without a model, a key or a collection to search."""

from __future__ import annotations

from pydantic import SecretStr

from ...graphs.conversation.conversation import Conversation
from ...graphs.conversation.conversations import Conversations
from ...graphs.conversation.turn.store import ConversationSummary
from ...modules.errors import SettingsError
from ...modules.settings import Settings
from .saved_threads import may_hold_threads

_NOT_SEARCHED = "none"


def open_saved(settings: Settings) -> Conversations:
    """The conversations of the store, for everything but asking; use it in a ``with`` statement.

    The collection is opened by a question only, and the key is used by one only. Every saved turn has a finished search
    tree, which any graph reads alike, but for sub-runs that failed: these are only the judge's.
    """
    without_key = settings.model_copy(update={"llm_api_key": SecretStr("not needed")})
    return Conversations(_NOT_SEARCHED, mode="judge", settings=without_key)


def saved_summaries(settings: Settings) -> list[ConversationSummary]:
    """All conversations, the one that was last spoken in first; none, and no file made, where there is no store yet.

    Raises:
        SettingsError: The store cannot be opened.
    """
    if not may_hold_threads(settings.checkpoint_url):
        return []
    with open_saved(settings) as conversations:
        return conversations.summaries()


def known_conversation(conversations: Conversations, session_id: str) -> Conversation:
    """The conversation of that name.

    Raises:
        SettingsError: Nothing was ever asked in it.
    """
    conversation = conversations.conversation(session_id)
    if not conversation.branches():
        raise _unknown(session_id)
    return conversation


def refuse_without_store(settings: Settings, session_id: str) -> None:
    """Pass if there may be conversations at all, so that looking for one makes no store.

    Raises:
        SettingsError: There is no store yet.
    """
    if not may_hold_threads(settings.checkpoint_url):
        raise _unknown(session_id)


def _unknown(session_id: str) -> SettingsError:
    return SettingsError(
        f"There is no conversation {session_id!r}. `judgetree conversations list` lists those there are."
    )
