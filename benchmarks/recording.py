"""What it costs to keep every prompt and reply of the project's own questions: processor, disk, and a page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from judgetree.graphs.rag.result import RagResult
from judgetree.graphs.session import RagSession
from judgetree.modules.recorded_texts import Record
from judgetree.modules.settings import Settings

from .corpus import COLLECTION, ask_all, questions, scripted_standards
from .measurement import Row

ROUNDS = 3
"""Times that each setting is measured, in turn with the others."""


def ask_measured(settings: Settings, record: Record, name: str) -> tuple[float, Sequence[RagResult]]:
    """Ask all questions with a fresh store; returns CPU milliseconds a call, and the results."""
    own = settings.model_copy(
        update={"record": record, "checkpoints": f"sqlite:///{settings.home / name / 'checkpoints.sqlite'}"}
    )
    asked = [row.question for row in questions()]
    with RagSession(COLLECTION, topk=3, max_rec_depth=3, settings=own) as session:
        session.ask(asked[0])
        started = time.process_time()
        results = ask_all(session, asked)
        used_s = time.process_time() - started
    return used_s / sum(result.usage["llm_calls"] for result in results) * 1000, results


def measure() -> list[Row]:
    """Measure recording against none, in turn, and the size of what it keeps."""
    with scripted_standards() as (_, settings):
        times: dict[Record, list[float]] = {"none": [], "full": []}
        for number in range(ROUNDS):
            for record, taken in times.items():
                cpu_ms, results = ask_measured(settings, record, f"{record}-{number}")
                taken.append(cpu_ms)
        calls = sum(result.usage["llm_calls"] for result in results)
        folder = settings.home / f"full-{ROUNDS - 1}"
        kept = (folder / "checkpoints-transcripts.sqlite").stat().st_size
        plain = sum(_plain_bytes(result) for result in results)
        checkpoints = sum(file.stat().st_size for file in folder.glob("checkpoints.sqlite*"))
        largest = max(results, key=lambda result: result.usage["llm_calls"])
        page = len(largest.tree.to_html(picture=False))
    none, full = (median(times[record]) for record in ("none", "full"))
    return [
        Row(
            "CPU a call with searches, nothing recorded; every prompt and reply",
            f"{none:.2f} ms; {full:.2f} ms",
            note=f"{calls} calls, medians of {ROUNDS} in turn: {_listed(times['none'])}; {_listed(times['full'])}",
        ),
        Row(
            "a call on disk, every prompt and reply recorded",
            f"{kept / calls / 1000:.1f} kB",
            values=(kept / calls / 1000,),
            unit="kB",
            note=f"{plain / calls:,.0f} bytes as text; checkpoints {checkpoints / calls:,.0f} bytes",
        ),
        Row("page of a tree with all texts", f"{page / 1000:,.0f} kB", note=f"{largest.usage['llm_calls']} calls"),
    ]


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


def _plain_bytes(result: RagResult) -> int:
    calls = result.tree.calls()
    return sum(len(text.encode()) for call in calls for text in (*(text for _, text in call.messages), call.reply))
