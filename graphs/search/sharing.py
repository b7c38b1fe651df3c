"""Sharing: a sub-question that its tree or conversation has asked already takes the answer of that run."""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from ...modules.errors import ModelCallError, UserError
from .candidate import Candidate, Expansion
from .vectors import Vectors

logger = logging.getLogger(__name__)

_END_MARKS = " ?!.…？！。"

Embed = Callable[[str], Awaitable[Sequence[float]]]
"""Returns the vector of a question."""
Ending = Mapping[str, str | int | float | bool | None]
"""What a sub-run's end writes into the metadata of a chunk that asked it."""


def normalised(question: str) -> str:
    """Return a question without what does not tell it from another: capitals, blanks, marks at its end.

    >>> normalised(" Who wrote  It ?")
    'who wrote it'
    """
    words = " ".join(unicodedata.normalize("NFC", question).casefold().split())
    return words.rstrip(_END_MARKS) or words


@dataclass(frozen=True, kw_only=True)
class Link:
    """The decision that a sub-question takes its answer from a run that asked it before."""

    thread_id: str


class SharedRuns:
    """The questions of one tree with their runs, and which runs wait for which; used on one event loop.

    A thread waits for the sub-runs that it asks and for those that its chunks are linked to. A link that would close a
    circle of waiting threads is refused, so that none of them waits for ever.
    """

    def __init__(self, root: str, question: str, *, at: float = 1.0, embed: Embed | None = None) -> None:
        """Begin with the question of the thread ``root``.

        With ``embed``, questions whose vectors have a cosine similarity of ``at`` or more count as equal; ``prepare``
        must hear of each before it is compared.
        """
        self._embed = embed
        self._vectors = Vectors(at)
        """By normalised question."""
        self._granted: dict[str, tuple[int, int]] = {root: (0, 0)}
        """Round and priority of threads."""
        self._asking: defaultdict[str, set[str]] = defaultdict(set, {normalised(question): {root}})
        """Threads by their questions."""
        self._waits_for: defaultdict[str, set[str]] = defaultdict(set)
        self._ends: dict[str, asyncio.Future[Ending]] = {}
        self._recalled: set[str] = set()
        """Questions that earlier trees have answered."""

    async def prepare(self, *questions: str) -> None:
        """Embed questions that are new, if similar ones are shared; one whose embedding fails has only equal ones.

        Raises:
            SettingsError: A vector cannot be compared.
            ModelSetupError: The embedding model cannot be used at all.
        """
        for question in questions:
            key = normalised(question)
            if self._embed is not None and question and key not in self._vectors:
                try:
                    vector = await self._embed(question)
                except ModelCallError as error:
                    if isinstance(error, UserError):
                        raise
                    logger.warning("no similar questions are looked for: %s", error)
                    continue
                if key not in self._vectors:  # another branch may have embedded it meanwhile
                    self._vectors.add(key, vector)

    def granted(self, thread_id: str, expansion: Expansion) -> None:
        """Note a granted sub-run; again, once the question of a further try is written."""
        candidate = expansion.candidate
        self._granted[thread_id] = expansion.round, expansion.priority
        self._waits_for[candidate.thread_id].add(thread_id)
        if candidate.next_query:
            self._asking[normalised(candidate.next_query)].add(thread_id)

    def recalled(self, question: str, thread_id: str, answer: str, *, sub_runs: int, llm_calls: int) -> None:
        """Note a question that an earlier tree has answered, and what that took; the first of equal ones counts."""
        key = normalised(question)
        if key not in self._recalled:
            self._recalled.add(key)
            self._granted[thread_id] = (-1, len(self._recalled))
            self._asking[key].add(thread_id)
            saved = {"shared_sub_runs": sub_runs, "shared_llm_calls": llm_calls}
            self.ended(thread_id, {"sub_answer": answer, "sub_run_error": "", "budget_spent": "", **saved})

    def linked(self, waiting: str, thread_id: str) -> None:
        """Note that a thread waits for a run that another thread asked."""
        self._waits_for[waiting].add(thread_id)

    def distinct(self, chosen: Iterable[Candidate]) -> Iterator[Candidate]:
        """Yield candidates without those that repeat the question of an earlier one."""
        seen: set[str] = set()
        for each in chosen:
            key = normalised(each.next_query)
            if not each.next_query or not ({key, *self._vectors.near(key)} & seen):
                seen.add(key)
                yield each

    def decided(self, candidates: Iterable[Candidate]) -> list[tuple[Candidate, Link | None]]:
        """Return the candidates whose question was asked before, each with its link; None for one that is refused.

        They are decided in the order in which they could first be linked: by the round that made it possible, then by
        path. A run that was killed decides them in this order again, whichever of them were saved.
        """
        repeats = []
        for each in candidates:
            if threads := self._threads_asking(each.next_query):
                first = min(threads, key=lambda thread: (self._granted[thread], thread))
                since = max(self._granted[each.thread_id][0], self._granted[first][0])
                repeats.append(((since, each.order, self._granted[each.thread_id]), each, first))
        return [(each, self._link(each, first)) for _, each, first in sorted(repeats, key=itemgetter(0))]

    def _threads_asking(self, question: str) -> set[str]:
        if not question:
            return set()
        key = normalised(question)
        near = {key, *self._vectors.near(key)}
        return {thread for other in near for thread in self._asking.get(other, ())}

    def _link(self, candidate: Candidate, first: str) -> Link | None:
        if self._waits(first, candidate.thread_id):
            return None
        self.linked(candidate.thread_id, first)
        return Link(thread_id=first)

    def _waits(self, thread_id: str, other: str) -> bool:
        """Return whether a thread is another one, or waits for it over any others."""
        stack, seen = [thread_id], {thread_id}
        while stack:
            each = stack.pop()
            if each == other:
                return True
            new = self._waits_for.get(each, set()) - seen
            seen |= new
            stack.extend(new)
        return False

    def end_of(self, thread_id: str) -> asyncio.Future[Ending]:
        """Return what will hold the end of a sub-run."""
        return self._ends.setdefault(thread_id, asyncio.get_running_loop().create_future())

    def ended(self, thread_id: str, ending: Ending) -> None:
        """Pass on the end of a sub-run to those that are linked to it."""
        self.end_of(thread_id).set_result(ending)

    def failed(self, thread_id: str, error: BaseException) -> None:
        """Pass on an error that ends the question, an interrupt, or that the sub-run was cancelled."""
        end = self.end_of(thread_id)
        if isinstance(error, asyncio.CancelledError):
            end.cancel()
        else:
            end.set_exception(error)
            end.exception()  # nobody needs to be linked to it
