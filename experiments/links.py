"""Does a passage that others are linked with pay at equal tokens? Table, plot and rows of two confirmation runs.

``python -m experiments.links RUN_HOTPOTQA RUN_2WIKI`` writes ``links.csv``, ``.svg`` and the figures of ``links.md`` in
``docs/experiments``, from runs of ``frozen.yaml`` on the confirmation questions.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from judgetree.evaluation.metrics.power import detectable_difference
from judgetree.evaluation.metrics.statistics import compare_paired, mcnemar_p_value

from .pages import PAGES, fill, p_words, points, table
from .runs import question_rows

SETS = {"hotpotqa": "HotpotQA", "2wiki": "2WikiMultihopQA"}
JUDGE = "judge"


def rows_of(runs: Sequence[Path]) -> pd.DataFrame:
    """Return a row for each data set, question and system; a system is ``judge``, or the passages of a plain search."""
    found = []
    for name, run in zip(SETS, runs, strict=True):
        rows = question_rows(run)
        systems = rows["system"].str.extract(r"^naive(?:\(topk=(\d+)\))?$")[0].fillna("3")
        systems = systems.where(rows["system"].str.startswith("naive"), JUDGE)
        found.append(rows.assign(set=name, system=systems))
    return pd.concat(found)[["set", "id", "type", "system", "evidence", "found", "calls", "tokens"]]


def matched(rows: pd.DataFrame) -> str:
    """Return the least number of passages with which a plain search has as many tokens as the judge."""
    spent = rows.groupby("system")["tokens"].mean()
    plain = sorted((each for each in spent.index if each != JUDGE), key=int)
    return next(each for each in plain if spent[each] >= spent[JUDGE])


def paired(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the evidence of the judge and of its match, by question."""
    wide = rows.pivot_table(index="id", columns="system", values="evidence", sort=False)
    return pd.DataFrame({"judge": wide[JUDGE], "naive": wide[matched(rows)]})


def _line(name: str, rows: pd.DataFrame) -> list[list[str]]:
    judge, topk = rows[rows["system"] == JUDGE], matched(rows)
    both = paired(rows)
    found = compare_paired(list(both["judge"]), list(both["naive"]), metric="evidence complete", test="mcnemar")
    gain = points(found.difference.mean, found.difference.low, found.difference.high)
    kept_all = judge.assign(evidence=judge["found"])
    lines = [
        [name, "three passages and a link, judged", *_means(judge), "", ""],
        [name, "the same, without the verdicts", _means(kept_all)[0], "1.00", "", "", ""],
    ]
    for each in sorted({"3", topk, _enough(rows) or "40"}, key=int):
        tested = [gain, p_words(found.p_value)] if each == topk else ["", ""]
        lines.append([name, f"naive, {each} passages", *_means(rows[rows["system"] == each]), *tested])
    return lines


def _enough(rows: pd.DataFrame) -> str | None:
    """Return the least number of passages with which a plain search finds as much; None if none does."""
    means = rows.groupby("system")["evidence"].mean()
    plain = sorted((each for each in means.index if each != JUDGE), key=int)
    return next((each for each in plain if means[each] >= means[JUDGE]), None)


def kinds(rows: pd.DataFrame) -> list[list[str]]:
    """Return a line for each kind of question: complete with links, and by the match, and questions of one alone."""
    lines = []
    for kind, part in rows.groupby("type", sort=False):
        wide = part.pivot_table(index="id", columns="system", values="evidence", sort=False)
        ours, theirs = wide[JUDGE], wide[matched(rows)]
        alone = f"{int((ours > theirs).sum())} : {int((ours < theirs).sum())}"
        lines.append([str(kind).replace("_", " "), f"{len(wide)}", f"{int(ours.sum())}", f"{int(theirs.sum())}", alone])
    return lines


def _means(rows: pd.DataFrame) -> list[str]:
    return [f"{100 * rows['evidence'].mean():.1f} %", f"{rows['calls'].mean():.2f}", f"{rows['tokens'].mean():,.0f}"]


def summary(rows: pd.DataFrame) -> str:
    """Say the outcome in a sentence."""
    both = pd.concat([paired(part) for _, part in rows.groupby("set")])
    differences = (both["judge"] - both["naive"]).to_numpy()
    found = compare_paired(list(both["judge"]), list(both["naive"]), metric="evidence complete", test="mcnemar")
    least = detectable_difference(len(both), discordance=float((differences != 0).mean())) or 1.0
    low, high = found.difference.low or 0.0, found.difference.high or 0.0
    found_at_all = rows[rows["system"] == JUDGE]["found"].mean()
    return (
        f"**Beside three retrieved passages one that they are linked with gives complete evidence for "
        f"{100 * both['judge'].mean():.1f} % of {len(both)} questions; plain retrieval of as many prompt tokens gives "
        f"it for {100 * both['naive'].mean():.1f} %: {100 * found.difference.mean:+.1f} points "
        f"(95 % interval {100 * low:.1f} to {100 * high:.1f}, p {p_words(mcnemar_p_value(differences))}).** "
        f"The judge has no part in that: without its verdicts it would be {100 * found_at_all:.1f} %. "
        f"With so many questions a true difference of {100 * least:.0f} points is shown four times in five."
    )


def plot(rows: pd.DataFrame, file: Path) -> None:
    """Draw evidence against tokens."""
    matplotlib.rcParams["svg.hashsalt"] = file.stem  # the same picture twice
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, (name, title) in zip(figure.subplots(1, 2, sharey=True), SETS.items(), strict=True):
        means = rows[rows["set"] == name].groupby("system")[["evidence", "tokens"]].mean()
        plain = means.loc[sorted((each for each in means.index if each != JUDGE), key=int)]
        axes.plot(plain["tokens"], 100 * plain["evidence"], marker="o", color="0.45", label="naive, by passages")
        for topk, each in plain.iterrows():
            axes.annotate(
                str(topk), (each["tokens"], 100 * each["evidence"]), (3, -11), textcoords="offset points", fontsize=8
            )
        judge = means.loc[JUDGE]
        axes.plot(judge["tokens"], 100 * judge["evidence"], "D", color="C0", label="three passages and a link")
        axes.set(title=title, xlabel="prompt tokens a question", ylim=(0, 100))
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right")
    figure.axes[0].set_ylabel("evidence complete, %")
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs=2)
    rows = rows_of(parser.parse_args().runs)
    rows.to_csv(PAGES / "links.csv", index=False, lineterminator="\n")
    plot(rows, PAGES / "links.svg")
    heads = ["data set", "system", "evidence complete", "calls", "prompt tokens", "judge minus it, in points", "p"]
    lines = [line for name, part in rows.groupby("set", sort=False) for line in _line(SETS[str(name)], part)]
    by_kind = [[SETS[str(name)], *line] for name, part in rows.groupby("set", sort=False) for line in kinds(part)]
    parts = {
        "summary": summary(rows),
        "table": table(heads, lines),
        "kinds": table(["data set", "kind", "questions", "with a link", "plain", "complete with one alone"], by_kind),
    }
    fill(PAGES / "links.md", parts)


if __name__ == "__main__":
    main()
