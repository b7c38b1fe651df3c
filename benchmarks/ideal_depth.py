"""How much an ideal judge and reader could find at each depth: is the evidence complete, and at how many calls?

The judge is the oracle; the reader is the scripted one, which answers only from complete evidence. What is left to fail
is retrieval and depth.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_qa import Question, gold_facts
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import Limits
from judgetree.modules.judge.oracle import OracleJudge
from judgetree.modules.settings import Settings

from .corpus import COLLECTION, indexed_standards, is_right, questions, settings_for
from .measurement import Row


async def _complete_and_calls(session: RagSession, rows: list[Question]) -> tuple[int, float, float]:
    results = await asyncio.gather(*(session.aask(row.question) for row in rows))
    complete = sum(is_right(row, result.answer, result.status) for row, result in zip(rows, results, strict=True))
    answers = sum(result.usage["llm_calls"] for result in results) / len(rows)
    judged = sum(chunk.verdict == "judged" for result in results for chunk in result.tree.chunk_nodes()) / len(rows)
    return complete, answers, judged


def measure_depth(depth: int | None, rows: list[Question], settings: Settings) -> Row:
    """One depth; None is naive RAG, which has no judge."""
    judge = OracleJudge(gold_facts(rows))
    limits = Limits(max_rec_depth=depth or 0)
    system = "judge" if depth is not None else "naive"
    with RagSession(COLLECTION, system=system, judge=judge, limits=limits, settings=settings) as session:  # type: ignore[arg-type]
        complete, answers, judged = asyncio.run(_complete_and_calls(session, rows))
    return Row(
        "naive" if depth is None else f"depth {depth}",
        f"evidence complete {complete}/{len(rows)} ({complete / len(rows):.0%}), "
        f"{answers + judged:.1f} calls a question ({judged:.1f} verdicts, {answers:.1f} answers)",
    )


def measure() -> list[Row]:
    """Naive, then depths 1 to 3, over the questions of two and three hops and the comparisons."""
    rows = questions("2hop", "3hop", "compare")
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(questions()) as server:
        settings = settings_for(Path(folder), server.base_url)
        with indexed_standards(settings):
            pass
        return [measure_depth(depth, rows, settings) for depth in (None, 1, 2, 3)]
