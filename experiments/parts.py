"""Which part matters? Judged recursion with ideal parts, and one of them worse at a time: figures of ``parts.md``.

``python -m experiments.parts RUN_HOTPOTQA RUN_MUSIQUE`` writes ``parts.csv`` and the tables, from runs of
``parts.yaml``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from judgetree.evaluation.metrics.clusters import clusters_of
from judgetree.evaluation.metrics.statistics import compare_paired

from .pages import PAGES, fill, points, table
from .runs import question_rows

SETS = {"hotpotqa": "HotpotQA 500", "musique": "MuSiQue 100"}
IDEAL = "judge"
FIGURES = ("evidence", "calls", "tokens")
PARTS: Mapping[str, tuple[str, str]] = {
    "sparse": ("retriever, words alone", "judge(search_type=sparse)"),
    "dense": ("retriever, embeddings alone", "judge(search_type=dense)"),
    "auc_95": ("judge, AUC .95", "judge(judge=noisy:auc=.95)"),
    "auc_90": ("judge, AUC .9", "judge(judge=noisy:auc=.9)"),
    "auc_80": ("judge, AUC .8", "judge(judge=noisy:auc=.8)"),
    "auc_65": ("judge, AUC .65", "judge(judge=noisy:auc=.65)"),
    "auc_50": ("judge, AUC .5 (chance)", "judge(judge=noisy:auc=.5)"),
    "writer_75": ("writer, right in 75 %", "judge(judge=noisy:writer=.75)"),
    "writer_50": ("writer, right in 50 %", "judge(judge=noisy:writer=.5)"),
    "writer_25": ("writer, right in 25 %", "judge(judge=noisy:writer=.25)"),
    "writer_0": ("writer, never right", "judge(judge=noisy:writer=0)"),
}
"""What is worse, in words, and the system in which it is, by a short name."""


def wide_rows(runs: Sequence[Path]) -> pd.DataFrame:
    """Return a row for each data set and question, with evidence, calls and tokens of each system."""
    names = {IDEAL: "ideal", **{system: short for short, (_, system) in PARTS.items()}}
    found = []
    for name, run in zip(SETS, runs, strict=True):
        rows = question_rows(run).assign(system=lambda each: each["system"].map(names))
        wide = rows.pivot_table(index="id", columns="system", values=[*FIGURES], sort=False)
        wide.columns = [f"{system}_{figure}" for figure, system in wide.columns]
        ordered = [f"{short}_{figure}" for short in names.values() for figure in FIGURES]
        found.append(wide[ordered].astype(int).reset_index().assign(set=name))
    return pd.concat(found)


def clusters(name: str, ids: Sequence[str]) -> list[str] | None:
    """Return the cluster of each question of MuSiQue, whose ids name the facts that they share; None of HotpotQA."""
    if name != "musique":
        return None
    found = clusters_of({each: tuple(each.partition("__")[2].split("_")) for each in ids})
    return [found[each] for each in ids]


def lines(name: str, rows: pd.DataFrame) -> list[list[str]]:
    """Return a line for each part: evidence, calls, tokens, and what is lost beside ideal parts."""
    found = [[SETS[name], "all ideal", *_means(rows, "ideal"), ""]]
    groups = clusters(name, list(rows["id"]))
    for short, (words, _) in PARTS.items():
        test = compare_paired(
            rows[f"{short}_evidence"].astype(float).tolist(),
            rows["ideal_evidence"].astype(float).tolist(),
            metric="evidence complete",
            test="permutation" if groups else "mcnemar",
            groups=groups,
        )
        lost = points(test.difference.mean, test.difference.low, test.difference.high)
        found.append([SETS[name], words, *_means(rows, short), lost])
    return found


def _means(rows: pd.DataFrame, short: str) -> list[str]:
    evidence, calls, tokens = (rows[f"{short}_{figure}"].mean() for figure in FIGURES)
    return [f"{100 * evidence:.1f} %", f"{calls:.1f}", f"{tokens:,.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs=2)
    rows = wide_rows(parser.parse_args().runs)
    rows.to_csv(PAGES / "parts.csv", index=False, lineterminator="\n")
    heads = [
        "data set",
        "worse than ideal",
        "evidence complete",
        "calls",
        "prompt tokens",
        "minus all ideal, in points",
    ]
    found = [line for name in SETS for line in lines(name, rows[rows["set"] == name])]
    fill(PAGES / "parts.md", {"table": table(heads, found)})


if __name__ == "__main__":
    main()
