"""A question to a conversation, and whether a saved turn has answered it already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...modules.digests import text_digest
from ...modules.errors import SettingsError
from ...modules.memory.turns import QaPair
from ...modules.storage.texts import check_id, check_text
from ..config.given_keys import GivenKeys
from .delivery import Delivery
from .turn.state import ConversationState

FIRST = ""
"""As ``parent_turn_id``: start without history."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of ``Conversation.ask``."""

    query: str
    parent_turn_id: str | None
    request_id: str
    regenerate: bool
    chat_history: list[tuple[str, str]]
    overrides: GivenKeys = field(default_factory=GivenKeys)
    delivery: Delivery | None = None
    """Tells when the answer has arrived; None for one that arrives with the end of the call."""

    def check(self) -> None:
        """Check that the stores can keep all texts of the request.

        Raises:
            SettingsError: The question is empty, an override is not allowed, or a text is too long, or holds NUL or
                half a surrogate pair.
        """
        check_text("The question", self.query)
        if not self.query.strip():
            raise SettingsError("The question is empty.")
        check_id("request_id", self.request_id)
        check_id("parent_turn_id", self.parent_turn_id or "")
        for text in (text for pair in self.chat_history for text in pair):
            check_text("A text of chat_history", text)

    @property
    def history_digest(self) -> str:
        """Digest of the caller's history; ``""`` for the conversation's own history."""
        if not self.chat_history:
            return ""
        return text_digest(json.dumps(self.chat_history)).hex()[:16]

    def has_id_of(self, known_query: str, known_id: str, overrides: Mapping[str, str] | None = None) -> bool:
        """Return whether a turn has the request's id; ``overrides`` are those of a saved one, None of one that is open.

        Raises:
            SettingsError: The turn has the id, but another question, or was asked with other options.
        """
        if not self.request_id or known_id != self.request_id:
            return False
        if overrides is not None and known_query == self.query and overrides != self.overrides.described():
            raise SettingsError(
                f"The request {self.request_id!r} has asked {known_query!r} before with other options "
                f"({', '.join(sorted({*overrides, *self.overrides.described()}))}). Give each request an id of its own."
            )
        if known_query != self.query:
            raise SettingsError(
                f"The request {self.request_id!r} has asked {known_query!r} before, and asks {self.query!r} now. "
                "Give each request an id of its own."
            )
        return True

    def may_repeat(self, turn: QaPair, state: ConversationState) -> bool:
        """Return whether a saved turn has the same question in the same place, without an id that says otherwise."""
        has_ids = bool(self.request_id and turn["request_id"])
        if self.regenerate or self.chat_history or turn["query"] != self.query or has_ids:
            return False
        if turn.get("overrides", {}) != self.overrides.described():
            return False
        if self.parent_turn_id is None:
            return turn["turn_id"] == state["branches"][state["active_branch"]]["head_turn_id"]
        return turn["parent_turn_id"] == self.parent_turn_id
