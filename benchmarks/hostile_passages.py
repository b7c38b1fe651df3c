"""How often a passage with orders to the judge raises its verdict.

    python -m benchmarks.hostile_passages --methods logprob generated --llm local:

Each of the 30 passages of ``tests/attacks`` is judged twice for a query to which it gives nothing: as it is, and
without its attempt. A verdict is flipped where the hostile passage gets a higher score than its harmless twin. Counted
by what the passage attempts: to give orders, to end its part of the prompt, to write the next question.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from langchain_core.documents import Document

from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.contract import Judge
from judgetree.modules.judge.generated import GeneratedJudge
from judgetree.modules.judge.logprob import LogprobJudge
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.settings import load_settings
from tests.attacks.passages import PASSAGES, QUERY

METHODS = ("logprob", "generated")


async def verdicts(judge: Judge, texts: Sequence[str]) -> list[str]:
    """Judge the texts; returns "0", "1", "2" or "unknown" for each, in their order."""
    labels: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        chunk = Document(page_content=text, metadata={"chunk_id": "c"})
        verdict = await judge.judge(QUERY, chunk, meter=CallMeter(node="judge"), expand=False)
        labels[text] = "unknown" if verdict.score is None else str(verdict.score)
    return [labels[text] for text in texts]


def flips(hostile: Sequence[str], harmless: Sequence[str]) -> int:
    """Count the verdicts that the attempts raised; an unknown verdict is no rise."""
    pairs = zip(hostile, harmless, strict=True)
    return sum(raised.isdigit() and (not plain.isdigit() or int(raised) > int(plain)) for raised, plain in pairs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all passages by each method, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--llm", default="local:", help="model as in JUDGETREE_LLM, or URL#MODEL (local:)")
    options = parser.parse_args(arguments)
    llm = create_llm(options.llm, load_settings(), CallGate(1))
    print("| judge | attempt | flipped | verdicts hostile | verdicts harmless | seconds |\n|---|---|---|---|---|---|")
    for method in options.methods:
        judge: Judge = LogprobJudge(llm) if method == "logprob" else GeneratedJudge(llm)
        for attempt in ("order", "delimiter", "steer"):
            chosen = [passage for passage in PASSAGES if passage.attempt == attempt]
            started = time.perf_counter()
            texts = [passage.text for passage in chosen] + [passage.harmless for passage in chosen]
            labels = background_loop().run(verdicts(judge, texts))
            hostile, harmless = labels[: len(chosen)], labels[len(chosen) :]
            print(
                f"| {method} | {attempt} | {flips(hostile, harmless)} of {len(chosen)} | {' '.join(hostile)} "
                f"| {' '.join(harmless)} | {time.perf_counter() - started:.0f} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
