"""Data of a report's page: every question with each system's answer, chunks and search trees.

Scores and predictions are plain, so that the page lists and filters them at once. The trees of a question, the bulk of
a page, are packed together, and the browser unpacks them when the question is opened. Chunk texts, which many trees
share, are in a pack of their own, as are the instructions of calls; only the context shown to a reader, and the
recorded messages, repeat them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ...graphs.drawing.html import Json, SharedTexts, describe_chunk, pack, query_data
from ...graphs.tree.nodes import ChunkNode, QueryNode, walk_chunks
from ...modules.storage.texts import printable
from ..datasets.questions import DialogueTurn, EvalQuestion
from ..labels.judgements import read_judgements
from ..labels.store import passage_id
from ..metrics.retrieval import GoldMark, best_gold_mark
from ..rows.store import RunRow
from ..rows.trees import TreeStore
from .failures import FAILURE_KINDS, FAILURE_WORDS
from .frames import records_of
from .loaded_run import LoadedRun
from .means import FIRED, recursion_fired


@dataclass(frozen=True, kw_only=True)
class PageData:
    """The three parts of the page's data."""

    index: Json
    """Systems, failure kinds, and all questions with their scores."""
    trees: list[str]
    """One pack per question of the index: the list of its answers' trees, in their order; null for a missing tree."""
    texts: str
    """Pack of the list of chunk texts, which trees refer to by index."""


def page_data(run: LoadedRun, frame: pd.DataFrame) -> PageData:
    """Collect the data of a run's page; questions in the order of the data set, answers in that of the rows.

    ``frame`` is the ``frames.question_frame`` of the run's rows, with a column ``failure``.
    """
    fired = recursion_fired(frame)
    records: dict[str, list[Mapping[str, object]]] = {}
    for record in records_of(frame.assign(fired=fired)):
        records.setdefault(str(record["question_id"]), []).append(record)
    rows = {row.thread_id: row for row in run.rows}
    asked = [question for question in run.dataset.questions if question.id in records]
    texts = SharedTexts()
    needed = needed_passages(run)
    packs = [
        pack([_tree(rows[str(each["thread_id"])], question, run.trees, texts, needed) for each in records[question.id]])
        for question in asked
    ]
    index: Json = {
        "systems": [str(system) for system in dict.fromkeys(frame["system"])],
        "kinds": {kind: FAILURE_WORDS[kind] for kind in FAILURE_KINDS},
        "questions": [_question(question, records[question.id]) for question in asked],
    }
    return PageData(index=index, trees=packs, texts=pack(texts.all()))


def _question(question: EvalQuestion, records: Sequence[Mapping[str, object]]) -> Json:
    answers = [_answer(record) for record in records]
    fired = next((record["fired"] for record in records), None)
    return {
        "id": printable(question.id),
        "question": printable(question.question),
        "type": printable(question.type),
        "hops": question.hops,
        "fired": None if fired is None else fired == FIRED,
        "gold": [printable(answer) for answer in question.answers],
        "known": question.answers_known,
        "supporting": [printable(key) for key in question.supporting],
        "turn": _turn(question.turn),
        "answers": answers,
    }


def _turn(turn: DialogueTurn | None) -> Json:
    if turn is None:
        return None
    return {
        "dialogue": printable(turn.dialogue_id),
        "number": turn.number,
        "rewrite": printable(turn.rewrite),
        "history": [[printable(asked), printable(answered)] for asked, answered in turn.history],
    }


def _answer(record: Mapping[str, object]) -> Json:
    numbers = {name: _number(record.get(name)) for name in ("em", "f1", "cover_em", "tree_recall", "seconds")}
    return {
        "system": str(record["system"]),
        "repeat": _number(record["repeat"]),
        "prediction": printable(str(record["prediction"])),
        "status": str(record["status"]),
        "error": printable(str(record["error"])),
        "completeness": str(record["completeness"]),
        "damage": str(record["damage"]),
        "caveats": str(record["caveats"]),
        "failure": None if record["failure"] is None else str(record["failure"]),
        "standalone": printable(str(record.get("standalone_query") or "")),
        "source": None if record.get("answered_from") is None else str(record["answered_from"]),
        "calls": _number(record.get("llm_calls")),
        **numbers,
    }


def _number(value: object) -> float | int | None:
    return value if isinstance(value, int | float) else None


def _tree(row: RunRow, question: EvalQuestion, trees: TreeStore, texts: SharedTexts, needed: Collection[str]) -> Json:
    tree = trees.read(row.thread_id)
    if tree is None:
        return None
    marks = gold_marks(tree.root, row, question, needed)

    def describe(chunk: ChunkNode) -> Mapping[str, Json]:
        return {
            **describe_chunk(chunk),
            "text": texts.place(printable(chunk.text)),
            "gold": marks[id(chunk)],
        }

    return query_data(tree.root, describe, transcripts=tree.read_transcripts(), texts=texts)


def gold_marks(root: QueryNode, row: RunRow, question: EvalQuestion, needed: Collection[str]) -> dict[int, GoldMark]:
    """Return the marks of all chunks of an answer's tree by ``id`` of the node: a chunk may be in several queries.

    Args:
        root: The tree.
        row: The answer.
        question: Its question.
        needed: Ids of the passages that were labelled 1 or 2, which are facts: ``needed_passages``.
    """
    keys = row.keys_by_chunk

    def mark(query: QueryNode, chunk: ChunkNode) -> GoldMark:
        if needed and passage_id(query.query, chunk.text) in needed:
            return "fact"
        return best_gold_mark(question, keys.get(chunk.chunk_id, ()), chunk.text)

    return {id(chunk): mark(query, chunk) for query, chunk in walk_chunks(root)}


def needed_passages(run: LoadedRun) -> set[str]:
    """Return the ids of the passages that were labelled 1 or 2 by hand."""
    return {each.passage.id for each in read_judgements(run.folder).settled if each.score > 0}
