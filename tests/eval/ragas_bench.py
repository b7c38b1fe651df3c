"""A run directory written by hand, and the scripted model that scores it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.ragas.metrics import MetricName, metrics_named
from judgetree.evaluation.ragas.scores import RagasScore, RagasStore
from judgetree.evaluation.rows.store import RowChunk, RunRow, RunStore
from judgetree.evaluation.rows.trees import TreeStore
from judgetree.evaluation.score_with_ragas import RagasOptions, score_run
from judgetree.evaluation.scoring.run_scorer import ScoringSummary
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.settings import Settings
from tests.eval.dataset_files import standards_row, write_standards
from tests.eval.run_rows import run_row
from tests.eval.shown import evidence_text

WALL = "How thick is the wall of the vessel that Norm A names?"
COLOUR = "Which colour are ladders painted?"
WELDER = "Who welded the drum?"
CORPUS = {"a.md": "Norm A names the drum.", "c.md": "Ladders are painted grey."}
QUESTIONS = (
    standards_row("wall", WALL, "40 mm", "a.md", CORPUS["a.md"]),
    standards_row("colour", COLOUR, "Grey.", "c.md", CORPUS["c.md"]),
    {"id": "welder", "lang": "en", "question": WELDER, "answer": "", "type": "unanswerable"},
)
REFUSED = "I cannot answer this question."


def chunk(text: str, *, score: int | None = None, sub: tuple[str, str] = ("", "")) -> ChunkNode:
    """``sub``: its sub-question and the answer to it."""
    verdict = {} if score is None else {"verdict": "judged", "score": score}
    return ChunkNode(
        chunk_id=text, text=text, metadata={"source": "s.md", **verdict, "next_query": sub[0], "sub_answer": sub[1]}
    )


def tree_of(row: RunRow, *chunks: ChunkNode) -> SearchTree:
    root = QueryNode(thread_id=row.thread_id, query=row.question, evidence=evidence_text(chunks), chunks=chunks)
    return SearchTree(root=root)


def row(question_id: str, prediction: str, system: str = "judge", **changes: object) -> RunRow:
    question = next(row["question"] for row in QUESTIONS if row["id"] == question_id)
    names = {"system": system, "question_id": question_id, "thread_id": f"{system}-{question_id}"}
    status = "refused" if prediction == REFUSED else "answered"
    return run_row(**{**names, "question": question, "prediction": prediction, "status": status, **changes})


@dataclass(frozen=True, kw_only=True)
class RagasBench:
    """A run directory, and what scores it."""

    server: ScriptedServer
    settings: Settings
    folder: Path

    def begin(self) -> None:
        """A manifest of a data set of three questions."""
        spec = f"standards:{write_standards(self.folder.parent / 'data', CORPUS, *QUESTIONS)}"
        self.folder.mkdir()
        RunStore(self.folder).write_manifest(
            {"run_id": "r", "experiment": {"dataset": spec}, "identity": {"dataset_digest": load_dataset(spec).digest}}
        )

    def add(self, row: RunRow, *chunks: ChunkNode) -> None:
        """A row of the run with its tree."""
        found = tuple(
            RowChunk(key=node.chunk_id, chunk_id=node.chunk_id, depth=0, rank=rank, verdict=node.verdict_label)
            for rank, node in enumerate(chunks)
        )
        TreeStore(self.folder).append(row.thread_id, tree_of(row, *chunks))
        RunStore(self.folder).append(RunRow(**{**vars(row), "chunks": found}))

    def score(self, metrics: str | None = None, **options: object) -> ScoringSummary:
        chosen = RagasOptions(metrics=metrics_named(metrics), **options)  # type: ignore[arg-type]
        return score_run(self.folder, chosen, settings=self.settings)

    def scores(self) -> dict[tuple[str, str, MetricName], RagasScore]:
        """The newest by system, question and metric."""
        kept = RagasStore(self.folder).read()
        return {(score.system, score.question_id, score.scorer.metric): score for score in kept}

    @property
    def requests(self) -> int:
        """Chat requests so far."""
        return self.server.requests["ragas"]
