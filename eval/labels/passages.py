"""Passages of a run to label by hand: all that its queries found, and a draw of them by strata of the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest

from ...graphs.tree.nodes import VERDICT_LABELS, walk_chunks
from ...modules.digests import text_digest
from ...modules.errors import SettingsError
from ..rows.store import RunRow
from ..rows.trees import TreeStore
from .store import FoundPassage


def found_passages(
    rows: Sequence[RunRow], trees: TreeStore, *, systems: Collection[str] | None = None
) -> Iterator[FoundPassage]:
    """Yield the passages that queries of the rows' trees found, in the order of rows and trees; it reads the trees.

    A pair of query and text comes once for each system.

    Args:
        rows: Rows of one run.
        trees: The trees of that run.
        systems: Systems whose trees count; None for those with verdicts, or for all if none has verdicts.

    Raises:
        SettingsError: ``systems`` names a system that the rows lack.
        LoadingError: A tree is damaged.
    """
    there = dict.fromkeys(row.system for row in rows)
    if unknown := sorted(set(systems or ()) - set(there)):
        raise SettingsError(f"The run has no system {', '.join(unknown)}. It has: {', '.join(there)}.")
    judged = {row.system for row in rows if any(chunk.verdict != "pending" for chunk in row.chunks)}
    wanted = set(systems) if systems is not None else judged or set(there)
    seen: set[tuple[str, str]] = set()
    for row in rows:
        tree = trees.read(row.thread_id) if row.system in wanted else None
        for node, chunk in walk_chunks(tree.root) if tree is not None else ():
            passage = FoundPassage(
                query=node.query,
                text=chunk.text,
                source=chunk.source,
                chunk_id=chunk.chunk_id,
                question_id=row.question_id,
                question=row.question,
                system=row.system,
                thread_id=row.thread_id,
                node=node.thread_id,
                verdict=chunk.verdict_label,
                p_needed=chunk.p_needed,
            )
            if (place := (row.system, passage.id)) not in seen:
                seen.add(place)
                yield passage


def draw_passages(passages: Iterable[FoundPassage], count: int, *, seed: int = 0) -> list[FoundPassage]:
    """Draw passages at random, as many from each stratum as there are; a stratum is a verdict.

    The draw depends on ids and seed alone, and a larger ``count`` keeps a smaller draw. Passages of a query follow each
    other, in an order that tells nothing of the verdicts. A pair that several systems found counts once, with the first
    verdict.

    Args:
        passages: Passages of one run.
        count: Number of passages to draw, or all of them if there are fewer.
        seed: Another seed gives another draw.
    """
    strata: defaultdict[str, list[FoundPassage]] = defaultdict(list)
    for passage in distinct_passages(passages):
        strata[passage.verdict].append(passage)
    shuffled = [sorted(strata[verdict], key=lambda each: _chance(seed, each.id)) for verdict in VERDICT_LABELS]
    drawn = list(islice(filter(None, chain.from_iterable(zip_longest(*shuffled))), count))
    return sorted(drawn, key=lambda each: (_chance(seed, each.question_id), each.query, _chance(seed, each.id)))


def distinct_passages(passages: Iterable[FoundPassage]) -> list[FoundPassage]:
    """Keep the first of the passages with the same id."""
    first: dict[str, FoundPassage] = {}
    for passage in passages:
        first.setdefault(passage.id, passage)
    return list(first.values())


def _chance(seed: int, text: str) -> bytes:
    return text_digest(str(seed), text)
