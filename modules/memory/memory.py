"""The long-term memory of conversations: their turns in Milvus, found again by path, by age and by meaning."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import numpy as np
from langchain_core.embeddings import Embeddings

from ..index.schema import DENSE_FIELD, PK_FIELD
from .collection import MemoryCollection
from .recent_turns import RecentTurns
from .schema import (
    ALL_COLUMNS,
    CONVERSATION_FIELD,
    MOMENT_FIELD,
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

RECENT_TTL_S = 300.0
_IDS_A_FILTER = 500
_EMBEDDED_CHARACTERS = 1_000
"""Of a question, its rewrite and its answer: what any embedder reads, where an endpoint may refuse a longer text."""
_PLACES_REMEMBERED = 10_000


class ConversationMemory:
    """Turns of any number of conversations in one collection, none of which sees another's.

    Nothing is opened before it is needed, and the collection is made by the first turn. A memory can be used from
    several threads; its methods block. Open, a Milvus Lite folder keeps other processes out: use it in a ``with``
    statement, or ``close`` it. A closed memory opens again when it is used again.

    Every method raises ``CollectionError`` where the database cannot be used, the collection is no memory or another
    embedder made it, or an id is longer than 1,024 bytes; those that embed pass on ``ModelCallError``.

    Args:
        embedder: The collection remembers it and refuses another one.
        collection: Name of the collection.
        uri: Milvus Lite folder (``….db``) or server address; None takes the setting ``milvus_uri``.
        token: For a server; None takes the setting.
        recent_ttl_s: Seconds for which ``get_recent_history`` may miss what another process writes.
        clock: Seconds, from anywhere on; for those.
    """

    def __init__(
        self,
        embedder: Embeddings,
        *,
        collection: str = "conversations",
        uri: str | None = None,
        token: str | None = None,
        recent_ttl_s: float = RECENT_TTL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.embedder = embedder
        self._rows = MemoryCollection(collection, {DENSE_FIELD: embedder}, uri=uri, token=token)
        self._recent = RecentTurns(ttl_s=recent_ttl_s, clock=clock)
        self._newest_since: dict[tuple[str, int], int] = {}
        self._there: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what other threads do with it, then close the connection; this frees a Milvus Lite folder.

        Closing twice does no harm.
        """
        self._rows.close()

    def add_conversation_turn(self, conversation_id: str, turn: QaPair) -> None:
        """Remember a turn, in place of the one of its id. It costs one embedding."""
        self.add_turns(conversation_id, [turn])

    def add_turns(self, conversation_id: str, turns: Sequence[QaPair]) -> None:
        """Remember turns, each in place of the one of its id; one embedding call for all. The last of an id counts.

        Raises:
            CollectionError: (Also) a turn takes more than 4 MB as JSON in ASCII; none is written then.
        """
        by_id = {turn["turn_id"]: turn for turn in turns}
        if not by_id:
            return
        in_conversation(conversation_id)  # refuses an impossible id before anything is paid for
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
        self._note(conversation_id, by_id)

    def missing(self, conversation_id: str, turn_ids: Iterable[str]) -> set[str]:
        """Which of the turns the memory does not hold. Of turns that this object has seen there it asks no more."""
        wanted = {turn_id for turn_id in turn_ids if (conversation_id, turn_id) not in self._there}
        there: set[str] = set()
        for row in self._read(conversation_id, sorted(wanted), [TURN_FIELD]) if wanted else ():
            there |= {str(row.get(TURN_FIELD)), str(row[PK_FIELD])}
        self._note(conversation_id, wanted & there)
        return wanted - there

    def get_recent_history(self, conversation_id: str, limit: int, *, spans: PathSpans | None = None) -> list[QaPair]:
        """The newest ``limit`` turns, oldest first: of a path by their numbers, else of the whole by their times.

        What this object wrote is seen at once, what others wrote after ``recent_ttl_s`` at the latest.
        """
        condition = in_conversation(conversation_id)
        if limit < 1 or (spans is not None and not spans):
            return []

        def load() -> list[QaPair]:
            if not self._rows.open():
                return []
            if spans is None:
                return self._newest_by_time(conversation_id, limit)
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
        """A conversation's turns nearest to a query, best first, each with its cosine (-1 to 1, higher is nearer).

        Args:
            conversation_id: The conversation; no other one is looked at.
            query: Costs one embedding; a blank one finds nothing.
            top_k: Turns at most.
            spans: Only turns on this path.
            below_number: Only turns with a lower number.
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
            vector = self.embedder.embed_query(query[:_EMBEDDED_CHARACTERS])
            hits = self._rows.search(vector, condition, TURN_COLUMNS, top_k)
        found = [(to_turn(row), score) for row, score in hits]
        return sorted(found, key=lambda hit: (-hit[1], hit[0]["turn_id"]))

    def turns_of(self, conversation_id: str, turn_ids: Iterable[str] | None = None) -> list[QaPair]:
        """Return all turns of a conversation, or those of them with these ids; oldest first."""
        ids = None if turn_ids is None else sorted(set(turn_ids))
        return sorted(map(to_turn, self._read(conversation_id, ids, TURN_COLUMNS)), key=by_time)

    def delete_turns(self, conversation_id: str, turn_ids: Iterable[str] | None = None) -> int:
        """Forget all turns of a conversation, or those with these ids; how many there were."""
        ids = None if turn_ids is None else sorted(set(turn_ids))
        keys = [str(row[PK_FIELD]) for row in self._read(conversation_id, ids, [PK_FIELD])]
        self._there = {seen for seen in self._there if seen[0] != conversation_id}
        with self._changing(conversation_id):
            self._rows.delete(keys)
        return len(keys)

    def move_turns(self, conversation_id: str, to_conversation_id: str) -> int:
        """Make all turns of a conversation turns of another one; how many there were.

        Nothing is embedded. After an interruption some turns may stand in both; doing it again mends that.
        """
        in_conversation(to_conversation_id)
        rows = list(self._read(conversation_id, None, ALL_COLUMNS))
        self._there = {seen for seen in self._there if seen[0] != conversation_id}
        with self._changing(conversation_id), self._changing(to_conversation_id):
            self._rows.upsert([moved(row, to_conversation_id) for row in rows])
            self._rows.delete([str(row[PK_FIELD]) for row in rows])
        return len(rows)

    def conversations(self) -> list[str]:
        """Ids of the conversations that have turns, sorted; reads the keys of all rows."""
        if not self._rows.open():
            return []
        return sorted({str(row[CONVERSATION_FIELD]) for row in self._rows.rows("", [CONVERSATION_FIELD])})

    def records_without_parent(self, conversation_id: str | None = None) -> dict[str, list[QaPair]]:
        """By conversation, oldest first: turns that another program wrote without saying what they follow.

        A first turn is none of them, since its parent is known: there is none.
        """
        condition = f"{PARENT_FIELD} is null"
        if conversation_id is not None:
            condition = f"{in_conversation(conversation_id)} and {condition}"
        found: dict[str, list[QaPair]] = {}
        for row in self._rows.rows(condition, TURN_COLUMNS) if self._rows.open() else ():
            found.setdefault(str(row[CONVERSATION_FIELD]), []).append(to_turn(row))
        return {conversation: sorted(turns, key=by_time) for conversation, turns in sorted(found.items())}

    def set_parents(self, conversation_id: str, turns: Sequence[QaPair]) -> int:
        """Write down parent, branch and number of turns that ``records_without_parent`` gave; how many there were.

        Nothing else of their rows changes, and nothing is embedded.
        """
        by_id = {turn["turn_id"]: turn for turn in turns}
        rows = [
            linked(row, by_id[to_turn(row)["turn_id"]])
            for row in self._read(conversation_id, sorted(by_id), ALL_COLUMNS)
        ]
        with self._changing(conversation_id):
            self._rows.upsert(rows)
        return len(rows)

    def _read(self, conversation_id: str, turn_ids: Sequence[str] | None, columns: Sequence[str]) -> Iterator[Row]:
        condition = in_conversation(conversation_id)
        if not self._rows.open():
            return
        if turn_ids is None:
            yield from self._rows.rows(condition, columns)
            return
        for start in range(0, len(turn_ids), _IDS_A_FILTER):
            batch = turn_ids[start : start + _IDS_A_FILTER]
            yield from self._rows.rows(f"{condition} and {of_turns(batch)}", columns)

    def _note(self, conversation_id: str, turn_ids: Iterable[str]) -> None:
        if len(self._there) >= _PLACES_REMEMBERED:
            self._there = set()
        # A new set, since another thread may be going through this one.
        self._there = self._there | {(conversation_id, turn_id) for turn_id in turn_ids}

    def _newest_by_time(self, conversation_id: str, limit: int) -> list[QaPair]:
        """Milvus cannot sort. But as many turns as wanted from some time on are the newest, whatever time that is."""
        condition = in_conversation(conversation_id)
        since = self._newest_since.get((conversation_id, limit))
        if since is not None:
            newer = f"{condition} and ({MOMENT_FIELD} >= {since:d} or {MOMENT_FIELD} is null)"
            rows = list(self._rows.rows(newer, TURN_COLUMNS))
        if since is None or len(_moments(rows)) < limit:
            rows = list(self._rows.rows(condition, TURN_COLUMNS))
        self._remember_time(conversation_id, limit, _moments(rows))
        return sorted(map(to_turn, rows), key=by_time)[-limit:]

    def _remember_time(self, conversation_id: str, limit: int, moments: Sequence[int]) -> None:
        if len(self._newest_since) >= _PLACES_REMEMBERED:
            self._newest_since.clear()
        if len(moments) >= limit:
            self._newest_since[conversation_id, limit] = moments[-limit]

    def _newest_on_path(self, condition: str, limit: int, *, last: int) -> list[QaPair]:
        window = self._rows.rows(f"{condition} and {NUMBER_FIELD} > {last - limit:d}", TURN_COLUMNS)
        turns = [to_turn(row) for row in window]
        if len(turns) < min(limit, last):  # some are not remembered: older ones take their place
            turns = [to_turn(row) for row in self._rows.rows(condition, TURN_COLUMNS)]
        return sorted(turns, key=lambda turn: turn["turn_number"])[-limit:]

    @contextmanager
    def _changing(self, conversation_id: str) -> Iterator[None]:
        try:
            yield
        finally:
            self._recent.drop(conversation_id)


def by_time(turn: QaPair) -> tuple[int, int, str]:
    """Orders turns by time; of one time, by number and then by id. A time that cannot be read comes first."""
    return moment_us(turn["timestamp"]) or 0, turn["turn_number"], turn["turn_id"]


def _moments(rows: Iterable[Row]) -> list[int]:
    """Times of the rows that have one in a column, in order."""
    return sorted(moment for row in rows if isinstance(moment := row.get(MOMENT_FIELD), int))


def _embedded_text(turn: QaPair) -> str:
    # The user's words come first: a rewrite may be wrong, and an embedder may read no further than the beginning.
    forms = dict.fromkeys((turn["query"], turn["standalone_query"], turn["answer"]))
    text = "\n".join(form[:_EMBEDDED_CHARACTERS] for form in forms)
    return text.encode(errors="replace").decode()


def backfill(memory: ConversationMemory, conversation_id: str | None = None, *, dry_run: bool = False) -> int:
    """Chain the turns without a parent in the order of their times (of one time, by id); how many there are.

    Each follows the one before it, the first of a conversation the last turn of its main branch; where there is none,
    it becomes a first turn. Done again it finds nothing to do, and after an interruption it goes on where it stopped.

    Args:
        memory: Where the turns are.
        conversation_id: One conversation; None for all.
        dry_run: Count, and change nothing.

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
    """The turns on the main branch, each as the child of the one before it; ``after`` stands before the first."""
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
