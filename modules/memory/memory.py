"""The long-term memory of conversations: their turns in Milvus, retrieved by path and by meaning."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

import numpy as np
from langchain_core.embeddings import Embeddings

from ..index.schema import DENSE_FIELD, PK_FIELD
from ..language.search_form import text_to_embed
from .collection import MemoryCollection
from .recent_turns import RecentTurns
from .schema import (
    ALL_COLUMNS,
    CONVERSATION_FIELD,
    NUMBER_FIELD,
    PARENT_FIELD,
    TURN_COLUMNS,
    TURN_FIELD,
    Row,
    in_conversation,
    linked,
    moment_us,
    moved,
    of_turns,
    on_path,
    to_row,
    to_turn,
)
from .turns import MAIN_BRANCH, PathSpans, QaPair

_IDS_A_FILTER = 500
_EMBEDDED_CHARACTERS = 1_000
"""Embedded characters of question, rewrite and answer each; an endpoint may refuse a longer text."""
_PLACES_REMEMBERED = 10_000


class ConversationMemory:
    """A store of the turns of any number of conversations in one collection, separated by conversation.

    The database is opened on demand, and the first turn creates the collection. Methods block and are thread-safe. An
    open Milvus Lite folder is shared with other processes of this user, until ``close`` or the end of the ``with``
    statement. A closed memory reopens at its next use.

    Every method raises ``CollectionError`` if the database cannot be used, the collection is not a memory or belongs to
    another embedder, or an id is longer than 1,024 bytes; methods that embed also raise ``ModelCallError``.

    Args:
        embedder: The embedder; its name is saved in the collection, which refuses another one.
        collection: Name of the collection.
        uri: Milvus Lite folder (``….db``) or server address; None takes the setting ``milvus_uri``.
        token: Token of a server; None takes the setting.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        embedder: Embeddings,
        *,
        collection: str = "conversations",
        uri: str | None = None,
        token: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.embedder = embedder
        self._rows = MemoryCollection(collection, {DENSE_FIELD: embedder}, uri=uri, token=token)
        self._recent = RecentTurns(clock)
        self._seen: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for uses in other threads, then close the connection, which frees a Milvus Lite folder."""
        self._rows.close()

    def add_turns(self, conversation_id: str, turns: Sequence[QaPair]) -> None:
        """Save turns in place of those with their ids, by one embedding call; of equal ids the last one counts.

        Raises:
            CollectionError: Also if a turn takes more than 4 MB as JSON in ASCII; then no turn is saved.
        """
        by_id = {turn["turn_id"]: turn for turn in turns}
        if not by_id:
            return
        in_conversation(conversation_id)  # refuses an invalid id before the embedding is paid for
        with self._rows.uses.entered():
            self._rows.open()
            vectors = self.embedder.embed_documents([_embedded_text(turn) for turn in by_id.values()])
            rows = [
                to_row(conversation_id, turn, np.asarray(vector, dtype=np.float32))
                for turn, vector in zip(by_id.values(), vectors, strict=True)
            ]
            for dimension in {len(vector) for vector in vectors}:
                self._rows.open(dimension=dimension)
            with self._changing(conversation_id):
                self._rows.upsert(rows)
        self._note_seen(conversation_id, by_id)

    def missing(self, conversation_id: str, turn_ids: Iterable[str]) -> set[str]:
        """Return the ids that the memory does not hold; turns that this object has seen there cost no request."""
        wanted = {turn_id for turn_id in turn_ids if (conversation_id, turn_id) not in self._seen}
        there: set[str] = set()
        for row in self._read(conversation_id, wanted, [TURN_FIELD]) if wanted else ():
            there |= {str(row.get(TURN_FIELD)), str(row[PK_FIELD])}
        self._note_seen(conversation_id, wanted & there)
        return wanted - there

    def get_recent_history(self, conversation_id: str, limit: int, *, spans: PathSpans) -> list[QaPair]:
        """Return the newest ``limit`` turns of a path, oldest first.

        Writes of this object are visible at once, those of others after five minutes at the latest.
        """
        condition = in_conversation(conversation_id)
        if limit < 1 or not spans:
            return []

        def load() -> list[QaPair]:
            if not self._rows.open():
                return []
            return self._newest_on_path(f"{condition} and {on_path(spans)}", limit, last=max(spans.values()))

        return self._recent.get(conversation_id, limit, spans, load)

    def retrieve_relevant_history(
        self,
        conversation_id: str,
        query: str,
        top_k: int,
        *,
        spans: PathSpans | None = None,
        below_number: int | None = None,
    ) -> list[tuple[QaPair, float]]:
        """Return the turns nearest to a query with their cosines (-1 to 1, higher is nearer), best first.

        Args:
            conversation_id: The conversation to search.
            query: The query, at the cost of one embedding; a blank one finds nothing.
            top_k: Most turns.
            spans: Limits the search to this path.
            below_number: Limits the search to turns with a lower number.
        """
        if top_k < 1 or not query.strip() or (spans is not None and not spans):
            return []
        condition = in_conversation(conversation_id)
        if spans is not None:
            condition += f" and {on_path(spans)}"
        if below_number is not None:
            condition += f" and {NUMBER_FIELD} < {below_number:d}"
        with self._rows.uses.entered():
            if not self._rows.open():
                return []
            vector = self.embedder.embed_query(text_to_embed(query[:_EMBEDDED_CHARACTERS], "folded"))
            hits = self._rows.search(vector, condition, TURN_COLUMNS, top_k)
        found = [(to_turn(row), score) for row, score in hits]
        return sorted(found, key=lambda hit: (-hit[1], hit[0]["turn_id"]))

    def turns_of(self, conversation_id: str, turn_ids: Iterable[str] | None = None) -> list[QaPair]:
        """Return the turns of a conversation, all or those with these ids, oldest first."""
        return in_order(map(to_turn, self._read(conversation_id, turn_ids, TURN_COLUMNS)))

    def delete_turns(self, conversation_id: str, turn_ids: Iterable[str] | None = None) -> int:
        """Delete the turns of a conversation, all or those with these ids, and return their number."""
        keys = [str(row[PK_FIELD]) for row in self._read(conversation_id, turn_ids, [PK_FIELD])]
        self._seen = {seen for seen in self._seen if seen[0] != conversation_id}
        with self._changing(conversation_id):
            self._rows.delete(keys)
        return len(keys)

    def move_turns(self, conversation_id: str, to_conversation_id: str) -> int:
        """Move all turns of a conversation to another one, and return their number.

        Nothing is embedded. After an interruption some turns may be in both; a second call completes the move.
        """
        in_conversation(to_conversation_id)
        rows = list(self._read(conversation_id, None, ALL_COLUMNS))
        self._seen = {seen for seen in self._seen if seen[0] != conversation_id}
        with self._changing(conversation_id), self._changing(to_conversation_id):
            self._rows.upsert([moved(row, to_conversation_id) for row in rows])
            self._rows.delete([str(row[PK_FIELD]) for row in rows])
        return len(rows)

    def conversations(self) -> list[str]:
        """Return the ids of the conversations that have turns, sorted; reads the keys of all rows."""
        if not self._rows.open():
            return []
        return sorted({str(row[CONVERSATION_FIELD]) for row in self._rows.rows("", [CONVERSATION_FIELD])})

    def records_without_parent(self, conversation_id: str | None = None) -> dict[str, list[QaPair]]:
        """Return turns of other programs that name no parent, by conversation, oldest first.

        A first turn is not among them: it has an empty parent.
        """
        condition = f"{PARENT_FIELD} is null"
        if conversation_id is not None:
            condition = f"{in_conversation(conversation_id)} and {condition}"
        found: dict[str, list[QaPair]] = {}
        for row in self._rows.rows(condition, TURN_COLUMNS) if self._rows.open() else ():
            found.setdefault(str(row[CONVERSATION_FIELD]), []).append(to_turn(row))
        return {conversation: sorted(turns, key=by_time) for conversation, turns in sorted(found.items())}

    def set_parents(self, conversation_id: str, turns: Sequence[QaPair]) -> int:
        """Save parent, branch and number of turns from ``records_without_parent``, and return their number.

        The rest of their rows is unchanged, and nothing is embedded.
        """
        by_id = {turn["turn_id"]: turn for turn in turns}
        rows = [linked(row, by_id[to_turn(row)["turn_id"]]) for row in self._read(conversation_id, by_id, ALL_COLUMNS)]
        with self._changing(conversation_id):
            self._rows.upsert(rows)
        return len(rows)

    def _read(self, conversation_id: str, turn_ids: Iterable[str] | None, columns: Sequence[str]) -> Iterator[Row]:
        condition = in_conversation(conversation_id)
        if not self._rows.open():
            return
        if turn_ids is None:
            yield from self._rows.rows(condition, columns)
            return
        ids = sorted(set(turn_ids))
        for start in range(0, len(ids), _IDS_A_FILTER):
            yield from self._rows.rows(f"{condition} and {of_turns(ids[start : start + _IDS_A_FILTER])}", columns)

    def _note_seen(self, conversation_id: str, turn_ids: Iterable[str]) -> None:
        if len(self._seen) >= _PLACES_REMEMBERED:
            self._seen = set()
        # A new set, since another thread may be iterating over this one.
        self._seen = self._seen | {(conversation_id, turn_id) for turn_id in turn_ids}

    def _newest_on_path(self, condition: str, limit: int, *, last: int) -> list[QaPair]:
        window = self._rows.rows(f"{condition} and {NUMBER_FIELD} > {last - limit:d}", TURN_COLUMNS)
        turns = [to_turn(row) for row in window]
        if len(turns) < min(limit, last):  # some are missing: older ones take their place
            turns = [to_turn(row) for row in self._rows.rows(condition, TURN_COLUMNS)]
        return sorted(turns, key=lambda turn: turn["turn_number"])[-limit:]

    @contextmanager
    def _changing(self, conversation_id: str) -> Iterator[None]:
        try:
            yield
        finally:
            self._recent.drop(conversation_id)


def by_time(turn: QaPair) -> tuple[int, int, str]:
    """Return the sort key of a turn: time, then number, then id. An unreadable time comes first."""
    return moment_us(turn["timestamp"]) or 0, turn["turn_number"], turn["turn_id"]


def in_order(turns: Iterable[QaPair]) -> list[QaPair]:
    """Return turns in the order of their times, each after its parent, whatever the clocks of their machines said."""
    moments: dict[str | None, int] = {}
    known = sorted(turns, key=by_time)
    for turn in sorted(known, key=lambda each: each["turn_number"]):
        moments[turn["turn_id"]] = max(by_time(turn)[0], moments.get(turn["parent_turn_id"], 0))
    return sorted(known, key=lambda each: (moments[each["turn_id"]], each["turn_number"], each["turn_id"]))


def _embedded_text(turn: QaPair) -> str:
    # The user's words come first: a rewrite may be wrong, and an embedder may read only the beginning.
    forms = dict.fromkeys((turn["query"], turn["standalone_query"], turn["answer"]))
    text = "\n".join(form[:_EMBEDDED_CHARACTERS] for form in forms)
    return text_to_embed(text.encode(errors="replace").decode(), "folded")


def backfill(memory: ConversationMemory, conversation_id: str | None = None, *, dry_run: bool = False) -> int:
    """Chain the turns without a parent in the order of their times, and return their number.

    Each turn follows the one before it, and the first follows the last turn of the main branch, if there is one. Equal
    times are ordered by id. An interrupted run can be repeated. No ``conversation_id`` means all conversations, and
    ``dry_run`` only counts the turns.

    Raises:
        CollectionError: The memory cannot be used.
    """
    unlinked = memory.records_without_parent(conversation_id)
    if not dry_run:
        for conversation, turns in unlinked.items():
            ids = {turn["turn_id"] for turn in turns}
            last = _last_of_main(turn for turn in memory.turns_of(conversation) if turn["turn_id"] not in ids)
            memory.set_parents(conversation, chained(turns, after=last))
    return sum(map(len, unlinked.values()))


def chained(turns: Sequence[QaPair], *, after: QaPair | None) -> list[QaPair]:
    """Return the turns on the main branch, each the child of the one before it and the first that of ``after``."""
    chain: list[QaPair] = []
    for turn in turns:
        parent = chain[-1] if chain else after
        chain.append(
            {
                **turn,
                "parent_turn_id": parent["turn_id"] if parent else "",
                "branch_id": MAIN_BRANCH,
                "turn_number": parent["turn_number"] + 1 if parent else 1,
            }
        )
    return chain


def _last_of_main(turns: Iterable[QaPair]) -> QaPair | None:
    main = (turn for turn in turns if turn["branch_id"] == MAIN_BRANCH)
    return max(main, key=lambda turn: (turn["turn_number"], turn["turn_id"]), default=None)
