"""Runs the benchmarks, prints their tables and adds them to docs/measured: ``python -m benchmarks [NAME …]``."""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from .history import add_run, run_of
from .measurement import as_markdown
from .pages import draw_pages

BENCHMARKS = (
    "standards_accuracy",
    "dialogues",
    "throughput",
    "faults",
    "ideal_depth",
    "tree_limits",
    "search_kills",
    "indexing",
    "embedding_speed",
    "scripts",
    "hosted_embedding",
    "adaptive_concurrency",
    "search_latency",
    "prebuilt",
    "unit_costs",
    "rankers",
    "links",
    "triples",
    "entities",
    "drawing",
    "weight",
    "recording",
    "hotpotqa_retrieval",
    "hotpotqa_oracle",
    "eval_throughput",
    "run_workers",
    "ledger_rate",
    "ray_kills",
    "ray_indexing",
    "eval_kills",
    "eval_faults",
    "eval_replay",
    "eval_report",
    "conversations",
    "conversation_kills",
    "stores",
    "serving",
    "serving_kills",
    "fuzzing",
    "false_alarms",
)


def main() -> int:
    """Run the benchmarks; exit status 1 if a requirement does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(BENCHMARKS)} (all)")
    parser.add_argument("--note", default="", metavar="TEXT", help="what is special about this run: 'a busy machine'")
    arguments = parser.parse_args()
    names = arguments.names or BENCHMARKS
    fell_short = False
    for name in names:
        if name not in BENCHMARKS:
            parser.error(f"unknown benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
        started = time.perf_counter()
        rows = importlib.import_module(f"{__package__}.{name}").measure()
        fell_short |= any(row.holds is False for row in rows)
        print(f"\n## {name} ({time.perf_counter() - started:.0f} s)\n\n{as_markdown(rows)}", flush=True)
        add_run(name, run_of(name, rows, arguments.note))
    draw_pages()
    return 1 if fell_short else 0


if __name__ == "__main__":
    sys.exit(main())
