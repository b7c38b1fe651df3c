"""A garbled or failing model, each fault alone at 20 % of calls: nothing may crash, and a resume must finish."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence

from judgetree.app.scripted.behaviour import FAULTS, Fault
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_qa import Question
from judgetree.graphs.rag.result import RagResult
from judgetree.graphs.session import RagSession
from judgetree.modules.settings import Settings

from .corpus import COLLECTION, questions, scripted_standards
from .measurement import Row

RATE = 0.2
RETRIES = 1
"""Two attempts a call, so that some questions do fail and the resume has something to finish."""


def most_failures(questions_asked: int, probability: float, *, confidence: float = 0.999) -> int:
    """Return the number that a binomial count of failures does not exceed, with the given confidence."""
    cumulative = 0.0
    for count in range(questions_asked + 1):
        ways = math.comb(questions_asked, count)
        cumulative += ways * probability**count * (1 - probability) ** (questions_asked - count)
        if cumulative >= confidence:
            return count
    return questions_asked


async def _ask(session: RagSession, rows: list[Question], prefix: str) -> list[RagResult | BaseException]:
    asked = (session.aask(row.question, thread_id=f"{prefix}-{row.id}") for row in rows)
    return list(await asyncio.gather(*asked, return_exceptions=True))


def measure_fault(fault: Fault, server: ScriptedServer, settings: Settings) -> Row:
    """Ask all questions under one fault, then resume the failed ones without it."""
    rows = questions()
    server.configure(faults={fault: RATE})
    with RagSession(COLLECTION, judge="generated", settings=settings) as session:
        results = asyncio.run(_ask(session, rows, fault))
        server.configure(faults={})
        crashes = [result for result in results if isinstance(result, BaseException)]
        done = [result for result in results if isinstance(result, RagResult)]
        failed = [result for result in done if result.status == "failed"]
        resumed = [session.ask(thread_id=result.thread_id, resume=True) for result in failed]
    verdicts: Counter[str] = Counter()
    for result in done:
        verdicts.update({str(label): count for label, count in result.tree.verdict_counts.items()})
    unknown = verdicts["unknown"] / max(sum(verdicts.values()), 1)
    finished = sum(result.status != "failed" for result in resumed)
    allowed = most_failures(len(rows), RATE ** (RETRIES + 1))
    return Row(
        f"{fault} at {RATE:.0%}, {RETRIES + 1} attempts, {len(rows)} questions",
        f"{len(crashes)} crashes, {len(failed)} failed, {finished} of them finished by resume, "
        f"{unknown:.1%} unknown verdicts",
        f"0 crashes, ≤ {allowed} failed, all resumed",
        holds=not crashes and len(failed) <= allowed and finished == len(failed),
        values=(len(crashes), len(failed), finished, unknown * 100),
    )


def _all_of(rows: Sequence[Row]) -> Row:
    crashes, failed, finished, unknown = zip(*(row.values for row in rows), strict=True)
    return Row(
        f"each of {len(rows)} faults alone at {RATE:.0%}, {RETRIES + 1} attempts: crashes; failed questions a fault",
        f"{sum(crashes):.0f}; {min(failed):.0f} to {max(failed):.0f}",
        rows[0].required,
        holds=all(row.holds for row in rows),
        note=f"{len(questions())} questions; {sum(finished):.0f} of {sum(failed):.0f} finished by a resume; "
        f"{min(unknown):.1f} to {max(unknown):.1f} % unknown verdicts",
    )


def measure() -> list[Row]:
    """Measure every fault alone, and sum up."""
    with scripted_standards(retries=RETRIES, timeout_s=2.0) as (server, settings):
        server.configure(retry_after_s=0.05, hold_s=3.0)
        rows = [measure_fault(fault, server, settings) for fault in FAULTS]
        return [_all_of(rows), *rows]
