"""Two-step questions of the example corpus, and which part stops a real model: figures of ``example-corpus.md``.

``python -m experiments.example_corpus RUN`` writes ``example-corpus.csv`` and the table, from a run of
``example_corpus.yaml``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from judgetree import evaluation

from .pages import PAGES, fill, table

COLUMNS = {
    "question_id": "id",
    "system": "system",
    "status": "status",
    "prediction": "answer",
    "cover_em": "right",
    "evidence": "evidence",
    "llm_calls": "calls",
    "prompt_tokens": "tokens",
    "seconds": "seconds",
}
NAMES = {
    "naive": "naive, 3 passages",
    "naive(topk=15)": "naive, 15 passages",
    "judge(judge=logprob; max_rec_depth=1)": "judge, one level",
    "ircot(max_rec_depth=3)": "ircot, 3 rounds",
}


def lines(rows: pd.DataFrame) -> list[list[str]]:
    """Return a line a system: answers that hold the gold answer, and where the others were lost."""
    found = []
    for name, part in rows.groupby("system", sort=False):
        right, evidence = part["right"] == 1, part["evidence"] == 1
        found.append(
            [
                NAMES[str(name)],
                f"{right.sum()} of {len(part)}",
                f"{(~right & ~evidence).sum()}",
                f"{(~right & evidence).sum()}",
                f"{part['calls'].mean():.1f}",
                f"{part['tokens'].mean():,.0f}",
                f"{part['seconds'].mean():.0f}",
            ]
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    rows = evaluation.load_report(parser.parse_args().run).questions[[*COLUMNS]].rename(columns=COLUMNS)
    rows.to_csv(PAGES / "example-corpus.csv", index=False, lineterminator="\n")
    heads = ["system", "right", "wrong, evidence missing", "wrong, evidence complete", "calls", "prompt tokens"]
    fill(PAGES / "example-corpus.md", {"table": table([*heads, "seconds"], lines(rows))})


if __name__ == "__main__":
    main()
