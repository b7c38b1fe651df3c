"""The search tree of a running question, built from its live events, and its lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

from rich.text import Text

from ...graphs.drawing.words import VERDICT_MARKS, count_of, format_skip
from ...graphs.rag.search_tree import SearchTree
from ...graphs.search.candidate import SkipReason
from ...graphs.threads.context import RunEvent
from ...graphs.tree.nodes import QueryNode, VerdictLabel, fold_queries
from .terminal import fit

LiveStatus = Literal["running", "answered", "refused", "failed", "skipped"]
MARK_STYLES: dict[VerdictLabel, str] = {
    "2": "bold green",
    "1": "yellow",
    "0": "dim",
    "unknown": "magenta",
    "cancelled": "red",
    "pending": "dim",
}
ANSWER_STYLES: dict[LiveStatus, str] = {
    "running": "dim",
    "answered": "green",
    "refused": "dim",
    "failed": "red",
    "skipped": "dim",
}
_LABELS: dict[object, VerdictLabel] = {2: "2", 1: "1", 0: "0"}
_FOLDED = "…"


@dataclass(kw_only=True)
class LiveQuery:
    """One thread, as known from its events."""

    thread_id: str
    query: str = ""
    verdicts: dict[str, VerdictLabel] = field(default_factory=dict)
    """Verdicts by chunk id, best chunk first."""
    children: list[LiveQuery] = field(default_factory=list)
    status: LiveStatus = "running"
    answer: str = ""
    """The answer, or why there is none."""


class LiveTree:
    """A tree that grows by events. Events may be missing: a resumed run sends none for its earlier work."""

    def __init__(self, root: LiveQuery) -> None:
        self.root = root
        self._queries: dict[str, LiveQuery] = {}
        self._enter(root)

    @classmethod
    def of_saved(cls, tree: SearchTree) -> LiveTree:
        """Make the tree of a thread that is about to be resumed."""
        return cls(_saved_query(tree.root))

    def apply(self, event: RunEvent) -> None:
        """Apply one event; unknown kinds change nothing."""
        query = self._query(str(event["thread_id"]), str(event.get("parent_thread_id", "")))
        match event["event"]:
            case "chunks":
                query.query = str(event["query"])
                query.verdicts = dict.fromkeys(_texts(event["chunk_ids"]), "pending")
            case "chunks_linked":
                query.verdicts |= dict.fromkeys(_texts(event["chunk_ids"]), "pending")
            case "verdict":
                query.verdicts[str(event["chunk_id"])] = _label(event["verdict"], event["score"])
            case "sub_run_planned":
                self._query(str(event["next_rag_thread_id"]), query.thread_id).query = str(event["next_query"])
            case "sub_run_done":
                _close(self._query(str(event["next_rag_thread_id"]), query.thread_id), event)
            case "answer":
                query.answer = str(event["answer"])
                query.status = "refused" if event["status"] == "refused" else "answered"

    def counts(self) -> str:
        """Describe the progress."""
        queries = self._queries.values()
        verdicts = [label for query in queries for label in query.verdicts.values()]
        judged = sum(1 for label in verdicts if label != "pending")
        return f"{count_of(len(queries), 'query')} · {judged} of {count_of(len(verdicts), 'chunk')} judged"

    def lines(self, *, columns: int, rows: int) -> list[Text]:
        """Draw one line per query; beyond ``rows``, finished queries are folded, then the rest is cut."""
        lines = list(_lines(self.root, columns, folds=False))
        if len(lines) > rows:
            lines = list(_lines(self.root, columns, folds=True))
        if len(lines) > rows:
            lines = [*lines[: rows - 1], Text(f"… and {len(lines) - rows + 1} more", style="dim")]
        return lines

    def _query(self, thread_id: str, parent_id: str) -> LiveQuery:
        if thread_id not in self._queries:
            query = LiveQuery(thread_id=thread_id)
            self._queries.get(parent_id, self.root).children.append(query)
            self._queries[thread_id] = query
        return self._queries[thread_id]

    def _enter(self, query: LiveQuery) -> None:
        waiting = [query]
        while waiting:
            each = waiting.pop()
            self._queries[each.thread_id] = each
            waiting += reversed(each.children)


def _saved_query(root: QueryNode) -> LiveQuery:
    def saved(node: QueryNode, below: list[list[LiveQuery]]) -> LiveQuery:
        return LiveQuery(
            thread_id=node.thread_id,
            query=node.query,
            verdicts={chunk.chunk_id: chunk.verdict_label for chunk in node.chunks},
            children=[each for sub_runs in below for each in sub_runs],
            status="running" if node.answer_status is None else node.answer_status,
            answer=node.answer,
        )

    return fold_queries(root, saved)


def _close(child: LiveQuery, event: RunEvent) -> None:
    if reason := next((each for each in get_args(SkipReason) if each == event.get("skipped")), None):
        child.status, child.answer = "skipped", format_skip(reason)
    elif error := str(event.get("sub_run_error") or ""):
        child.status, child.answer = "failed", error
    elif child.status == "running":  # finished before this run, so without an answer event
        child.status, child.answer = "answered", str(event.get("sub_answer", ""))


def _label(verdict: object, score: object) -> VerdictLabel:
    if verdict == "judged":
        return _LABELS.get(score, "unknown")
    return "cancelled" if verdict == "cancelled" else "unknown"


def _texts(values: object) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else []


def _lines(root: LiveQuery, columns: int, *, folds: bool) -> Iterator[Text]:
    waiting = [(root, "", "")]
    while waiting:  # without recursion
        query, lead, below = waiting.pop()
        children = [] if folds and lead and query.status != "running" else query.children
        yield _line(query, columns, lead, has_folded=len(children) < len(query.children))
        for child in reversed(children):
            corner, indent = ("└─ ", "   ") if child is children[-1] else ("├─ ", "│  ")
            waiting.append((child, (below + corner)[:columns], (below + indent)[:columns]))  # what is seen of it


def _line(query: LiveQuery, columns: int, lead: str, *, has_folded: bool) -> Text:
    """Draw guide, question, verdicts and answer; the answer gets at most a third of the line."""
    marks = Text(" ").join(Text(VERDICT_MARKS[label], style=MARK_STYLES[label]) for label in query.verdicts.values())
    shows_answer = bool(lead and query.answer)
    answer = f"{' ' + _FOLDED if has_folded else ''} → {fit(query.answer, columns // 3)}" if shows_answer else ""
    line = Text(lead, style="dim", no_wrap=True, overflow="ellipsis")
    room = columns - line.cell_len - marks.cell_len - Text(answer).cell_len - 5
    line.append(fit(query.query or "(asking)", room), style="bold" if not lead else "")
    if query.verdicts:
        line.append("  [", style="dim").append_text(marks).append("]", style="dim")
    line.append(answer, style=ANSWER_STYLES[query.status])
    line.truncate(columns, overflow="ellipsis")
    return line
