"""The directory of a run whose answers and trees are made up."""

from __future__ import annotations

from pathlib import Path

from judgetree.evaluation.datasets.questions import CorpusDocument, EvalQuestion
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.reports.page import write_report
from judgetree.evaluation.rows.from_results import row_of
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.rows.trees import TreeStore
from judgetree.graphs.rag.result import RagResult
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.threads.state import AnswerStatus, JsonScalar
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from tests.eval.dataset_files import hotpot_row, write_list

ATTACK = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"\u2028&lt;$x"
QUESTIONS = ("Which river drives the mill?", "磨坊在哪里?", f"What of {ATTACK}")
REFUSAL = "I cannot answer this question."


class RunWriter:
    """Writes the directory of a run over three questions: what models and retrieval would have done is made up."""

    def __init__(self, folder: Path, text: str = ATTACK, *, name: str = "rows.json") -> None:
        self.folder = folder
        context = (("Mill", ["The mill stands at the weir. ", text]), ("Weir", ["The weir is on the Vell."]))
        gold = (("Mill", 0), ("Weir", 0))
        rows = [
            hotpot_row(1, context, gold, question="Which river drives the mill?", answer="Vell"),
            hotpot_row(2, context, gold, question="磨坊在哪里?", answer="堰边", type="comparison"),
            hotpot_row(3, context, gold, question=f"What of {text}", answer="Nothing"),
        ]
        spec = f"hotpotqa:{write_list(folder, *rows, name=name)}"
        dataset = load_dataset(spec)
        self.questions: tuple[EvalQuestion, ...] = dataset.questions
        self.documents: dict[str, CorpusDocument] = {document.title: document for document in dataset.documents}
        self.store, self.trees = RunStore(folder), TreeStore(folder)
        identity = {"dataset_digest": dataset.digest, "llm": f"model {text}", "topk": 2}
        self.store.write_manifest(
            {
                "run_id": "run",
                "created": "2025-03-01T10:00:00+00:00",
                "experiment": {"dataset": spec},
                "identity": identity,
            }
        )

    def chunk(self, title: str, child: QueryNode | None = None, **metadata: JsonScalar) -> ChunkNode:
        document = self.documents[title]
        known = {"document_key": document.key, "source": title, "rank": 0, **metadata}
        below = (child,) if child else ()
        return ChunkNode(chunk_id=f"chunk {title}", text=document.text, metadata=known, sub_runs=below)

    def answer(
        self,
        system: str,
        number: int,
        prediction: str,
        *chunks: ChunkNode,
        status: AnswerStatus = "answered",
        repeat: int = 0,
    ) -> None:
        question, thread_id = self.questions[number], f"{system}-{number}" + (f"-{repeat}" if repeat else "")
        root = QueryNode(
            thread_id=thread_id,
            query=question.question,
            answer=prediction,
            status="failed" if status == "failed" else "finished",
            answer_status=status,
            evidence=f"evidence {number}",
            chunks=chunks,
        )
        tree = SearchTree(root=root)
        result = RagResult(
            answer=prediction,
            status=status,
            thread_id=thread_id,
            system=system,
            tree=tree,
            usage=tree.usage,
            usage_this_run=tree.usage,
            wall_s=1.0,
        )
        self.trees.append(thread_id, tree)
        row = row_of(
            question,
            result,
            place=(system, repeat, 0),
            thread_id=thread_id,
            error="it broke" if status == "failed" else "",
            seconds=number + 1.0,
            key_field="document_key",
        )
        self.store.append(row)

    def write(self, text: str = ATTACK) -> Path:
        """The page of what ``fill`` writes."""
        self.fill(text)
        return self.page()

    def fill(self, text: str = ATTACK) -> None:
        """The judge is right on the first question by a sub-run; the naive system fails in three ways."""
        self.answer("naive", 0, REFUSAL, self.chunk("Mill"), status="refused")
        self.answer("naive", 1, "堰边", self.chunk("Mill"))
        self.answer("naive", 2, "", status="failed")
        below = QueryNode(
            thread_id="sub",
            parent_thread_id="judge-0",
            depth=1,
            query="Where is the weir?",
            answer="On the Vell",
            status="finished",
            answer_status="answered",
            chunks=(self.chunk("Weir", verdict="judged", score=2),),
        )
        asks = {"next_query": "Where is the weir?", "sub_answer": "On the Vell", "next_rag_thread_id": "sub"}
        self.answer("judge", 0, "Vell", self.chunk("Mill", below, verdict="judged", score=1, reason=text, **asks))
        self.answer("judge", 1, "堰边", self.chunk("Mill", verdict="judged", score=2))
        self.answer("judge", 2, text, self.chunk("Mill", verdict="judged", score=0))

    def page(self) -> Path:
        page = next(file for file in write_report(self.folder).files if file.name == "report.html")
        assert page.parent == self.folder
        return page
