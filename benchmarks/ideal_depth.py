"""How much an ideal judge and reader could find at each depth: is the evidence complete, and at how many calls?

The judge is the oracle; the reader is the scripted one, which answers only from complete evidence. What is left to fail
is retrieval and depth.
"""

from __future__ import annotations

from judgetree.evaluation.datasets.standards_qa import Question, gold_facts
from judgetree.graphs.session import RagSession
from judgetree.modules.judge.oracle import OracleJudge
from judgetree.modules.settings import Settings

from .corpus import COLLECTION, ask_all, is_right, questions, scripted_standards
from .measurement import Row


def measure_depth(depth: int | None, rows: list[Question], settings: Settings) -> Row:
    """Measure one depth; None is naive RAG, which has no judge."""
    judging = {"judge": OracleJudge(gold_facts(rows)), "max_rec_depth": depth} if depth is not None else {}
    system = "judge" if depth is not None else "naive"
    with RagSession(COLLECTION, system=system, settings=settings, **judging) as session:
        results = ask_all(session, [row.question for row in rows])
    complete = sum(is_right(row, result.answer, result.status) for row, result in zip(rows, results, strict=True))
    answers = sum(result.usage["llm_calls"] for result in results) / len(rows)
    judged = sum(chunk.verdict == "judged" for result in results for chunk in result.tree.chunk_nodes()) / len(rows)
    system = "naive" if depth is None else f"depth {depth}"
    return Row(
        f"ideal judge and reader, {system}: evidence complete, calls a question",
        f"{complete / len(rows):.0%}, {answers + judged:.1f}",
        values=(complete / len(rows) * 100,),
        unit="%",
        note=f"{complete} of {len(rows)} questions; {judged:.1f} verdicts, {answers:.1f} answers",
    )


def measure() -> list[Row]:
    """Measure naive RAG, then depths 1 to 3, on multi-hop questions and comparisons."""
    rows = questions("2hop", "3hop", "compare")
    with scripted_standards() as (_, settings):
        return [measure_depth(depth, rows, settings) for depth in (None, 1, 2, 3)]
