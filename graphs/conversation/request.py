"""A question to a conversation, and whether a saved turn has answered it already."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ...modules.digests import text_digest
from ...modules.errors import RequestIdTaken, SettingsError
from ...modules.memory.turns import OpenTurn, QaPair
from ...modules.storage.texts import check_id, check_text
from ..config.given_keys import GivenKeys
from .delivery import Delivery
from .turn.state import ConversationState

FIRST = ""
"""As ``parent_turn_id``: start without history."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of ``Conversation.ask``, and of what it asks."""

    query: str
    system: str
    collection: str
    """Name and address of what is searched; ``""`` for a system that searches nothing."""
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

    def has_system_of(self, turn: QaPair | OpenTurn) -> bool:
        """Return whether system and collection are those of a turn; one of an earlier version names no system."""
        return (turn.get("system", self.system), turn["collection"]) == (self.system, self.collection)

    def has_id_of(self, turn: QaPair | OpenTurn) -> bool:
        """Return whether a turn has the request's id.

        Raises:
            RequestIdTaken: The turn has the id, but another question or history, or was asked with other options or of
                another system or collection.
        """
        if not self.request_id or turn["request_id"] != self.request_id:
            return False
        asked = f"The request {self.request_id!r} has asked {turn['query']!r} before"
        overrides, own = turn.get("overrides", {}), self.overrides.described()
        if turn["query"] != self.query:
            other = f", and asks {self.query!r} now"
        elif not self.has_system_of(turn):
            other = f" of {turn.get('system', self.system)} over {turn['collection'] or 'no collection'}"
        elif overrides != own:
            other = f" with other options ({', '.join(sorted({*overrides, *own}))})"
        elif not self._is_at_the_place_of(turn):
            other = " after other messages"
        else:
            return True
        raise RequestIdTaken(f"{asked}{other}. Give each request an id of its own.")

    def _is_at_the_place_of(self, turn: QaPair | OpenTurn) -> bool:
        """Return whether a turn follows what the request follows; one without a parent may follow any."""
        is_parent = self.parent_turn_id in (None, turn["parent_turn_id"])
        return is_parent and turn.get("given_history", "") == self.history_digest

    def may_repeat(self, turn: QaPair, state: ConversationState) -> bool:
        """Return whether a saved turn has the same question of the same system in the same place.

        An id of both says otherwise.
        """
        has_ids = bool(self.request_id and turn["request_id"])
        if self.regenerate or self.chat_history or turn["query"] != self.query or has_ids:
            return False
        if turn.get("overrides", {}) != self.overrides.described() or not self.has_system_of(turn):
            return False
        if self.parent_turn_id is None:
            return turn["turn_id"] == state["branches"][state["active_branch"]]["head_turn_id"]
        return turn["parent_turn_id"] == self.parent_turn_id
