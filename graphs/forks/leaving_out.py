"""Parts of a tree's evidence that an explanation leaves out, the cost of asking without each, and its effect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ...modules.calls.record import CallRecord
from ...modules.calls.usage import UsageTotals, total_usage
from ...modules.reader.refusals import is_refusal
from ..threads.handed_on import ANSWERING_NODE
from ..tree.nodes import ChunkNode, QueryNode
from ..tree.places import Place, chunk_name, query_numbers

Part = Literal["chunk", "branch"]
"""chunk: the chunk with its sub-question and answer. branch: the sub-question and its answer alone."""
Effect = Literal["decisive", "useless", "harmful"]
"""What a chunk or branch did to the answer of the root."""

_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")
_ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """One chunk or branch to be left out of the evidence of its query."""

    place: Place
    chunk: ChunkNode
    part: Part


@dataclass(frozen=True, kw_only=True)
class ExplainCost:
    """What an explanation costs at most; it costs less where an answer stays as it was."""

    left_out: int
    """Number of chunks and branches that are left out, one at a time."""
    records: tuple[CallRecord, ...]
    """Records of the calls that are made again, as they were made for the tree."""

    @property
    def usage(self) -> UsageTotals:
        """Calls, tokens and seconds."""
        return total_usage(self.records)


def leave_outs(root: QueryNode, *, max_depth: int | None = None) -> Iterator[Ablation]:
    """Yield all that the reader saw, query by query: first each chunk, then its sub-question if it was handed on.

    ``max_depth`` is the deepest level, 0 for the root's evidence alone; None takes all levels. What is below a
    sub-answer that no reader saw is left out of account, since it cannot have changed the root's answer.
    """
    numbers = query_numbers(root)
    queue: list[tuple[QueryNode, ...]] = [(root,)]
    for path in queue:
        query = path[-1]
        for chunk in query.shown_chunks:
            place = Place(name=chunk_name(numbers[query.thread_id], chunk), path=path, chunk=chunk)
            yield Ablation(place=place, chunk=chunk, part="chunk")
            if any(not is_refusal(each.handed_on) for each in chunk.sub_runs):
                yield Ablation(place=place, chunk=chunk, part="branch")
            if max_depth is None or len(path) <= max_depth:
                queue += ((*path, each) for each in chunk.sub_runs if each.answer)


def cost_of(wanted: Sequence[Ablation]) -> ExplainCost:
    """Return what leaving these out costs: the answer of the query, and of each one above it."""
    again = (record for each in wanted for query in each.place.path for record in query.usage)
    records = (CallRecord(**{**record, "cached": False}) for record in again if record["node"] == ANSWERING_NODE)
    return ExplainCost(left_out=len(wanted), records=tuple(records))


def effect_of(before: str, after: str, gold: Sequence[str] = ()) -> Effect:
    """Say what was left out did, by the root's answers with it (``before``) and without it (``after``).

    With gold answers, decisive is what makes the answer right, and harmful what makes it wrong. Without any, decisive
    is what the answer changes without, or turns into a refusal, and harmful what makes it a refusal.

    >>> effect_of("It is VG 68.", "VG 68"), effect_of("VG 68", "VG 46"), effect_of("VG 68", "VG 46", gold=["VG 46"])
    ('useless', 'decisive', 'harmful')
    """
    if gold:
        right, right_after = (any(_holds(answer, each) for each in gold) for answer in (before, after))
        return "useless" if right == right_after else "decisive" if right else "harmful"
    refused, refused_after = is_refusal(before), is_refusal(after)
    if refused or refused_after:
        return "useless" if refused and refused_after else "harmful" if refused else "decisive"
    return "useless" if _holds(before, after) or _holds(after, before) else "decisive"


def _holds(text: str, part: str) -> bool:
    """Return whether the words of ``part`` stand in ``text`` as one run, whatever their case and punctuation."""
    words, wanted = _words(text), _words(part)
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


def _words(text: str) -> list[str]:
    found = _TOKEN.findall(text.casefold())
    return [word for word in found if word not in _ARTICLES] or found
