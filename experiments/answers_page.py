"""What a real model answers, by how it searches: figures and page, from ``kept/``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from judgetree.evaluation.metrics.intervals import mean_interval
from judgetree.evaluation.metrics.statistics import PairedComparison, compare_paired

from .answers import NAMES, STAGE_B, kept_answers, read_answers, systems_of
from .batches import kept_file, kept_folder
from .evidence import JUDGE, MATCHED, SETS, as_many_tokens, cell, compared, ends
from .kept import read_kept
from .outcomes import BREADTH, BUDGET, outcomes
from .pages import fill, fill_summary, points, table
from .questions import ids_of
from .record import STAGE_A

FIGURES = {"f1": "F1", "em": "EM", "cover_em": "cover EM"}
_NUMBERS = (*FIGURES, "evidence", "calls", "tokens", "written", "seconds", "cut_off")
_ONE_SEARCH = 2
"""Calls of ircot or self-ask that has searched once."""
_SELF_ASK = 4, 6, 7
"""Calls of self-ask that has searched again once, twice and three times, after which it does not ask on."""
_TITLES = {part: SETS[of] for part, of in zip(STAGE_B, STAGE_A, strict=True)}


def write_answers(page: Path, model: str) -> None:
    """Write to a page what is known of a model, once all questions are answered; nothing of it before."""
    rows = read_answers(kept_answers(model))
    if not is_whole(rows):
        wanted = sum(len(ids_of(name)) for name in STAGE_B)
        said = f"**Not known yet: {rows['id'].nunique()} of the {wanted} questions are answered.**"
        fill_summary(page, said)
        return
    rows[[*_NUMBERS]] = rows[[*_NUMBERS]].apply(pd.to_numeric, errors="coerce")
    order = list(systems_of(1))
    rows = rows.sort_values("system", key=lambda names: names.map(order.index), kind="stable")
    stage_a = outcomes(each for name in STAGE_A for each in read_kept(kept_file(name, model)))
    seen = kept_folder(model) / "seen.md"
    parts = {
        "summary": summary(kept_folder(model).name, rows),
        "again": searched_again(rows),
        "seen": seen.read_text(encoding="utf-8") if seen.exists() else "",
        "before": known_before(stage_a, rows),
        "means": means_table(rows),
        "sets": sets_table(rows),
        "readers": readers_table(rows),
        "differences": differences_table(rows),
    }
    fill(page, parts)


def is_whole(rows: pd.DataFrame) -> bool:
    """Return whether all systems have answered all questions."""
    wanted = {(each, name) for part in STAGE_B for each in ids_of(part) for name in systems_of(1)}
    return set(zip(rows["id"], rows["system"], strict=True)) == wanted


def summary(model: str, rows: pd.DataFrame) -> str:
    """Say what the answers behind the judge are worth beside those behind others."""
    linked = NAMES[1]
    least = _compared(rows, JUDGE, MATCHED, "f1").smallest_detectable
    shown = (
        f"The smallest difference that so many show four times in five is {100 * least:.0f} points. " if least else ""
    )
    f1, tokens = ({name: part[of].mean() for name, part in rows.groupby("system")} for of in ("f1", "tokens"))
    return (
        f"**Behind judged recursion the answers of a real model (`{model}`) to {rows['id'].nunique()} questions have a "
        f"mean F1 of {100 * f1[JUDGE]:.1f}, and of {100 * f1[MATCHED]:.1f} behind plain retrieval of as many tokens: "
        f"{_difference(rows, JUDGE, MATCHED, 'f1')} points.** They take {tokens[JUDGE]:,.0f} and "
        f"{tokens[MATCHED]:,.0f} prompt tokens. Behind three passages and a link it is {100 * f1[linked]:.1f} with "
        f"{tokens[linked]:,.0f} tokens: judge minus that is {_difference(rows, JUDGE, linked, 'f1')} points. "
        f"{shown}No test is made."
    )


def known_before(stage_a: pd.DataFrame, rows: pd.DataFrame) -> str:
    """Say how stage A came out on these questions, and on all of its own."""
    chosen = stage_a[stage_a["id"].isin(set(rows["id"]))]
    of_all, of_these = (_evidence(each) for each in (stage_a, chosen))
    by_set = "; ".join(f"{SETS[str(name)]} {_evidence(part)}" for name, part in chosen.groupby("part", sort=False))
    return (
        "All these questions are in stage A, where readers of the judge's and of plain retrieval's tree saw all gold "
        f"documents for {of_these} points; {by_set}. On all of its {stage_a['id'].nunique()} questions it was {of_all}."
    )


def _evidence(stage_a: pd.DataFrame) -> str:
    """Say for how many questions the judge and plain retrieval had all evidence, and the difference."""
    judge = cell(stage_a, BREADTH, BUDGET)["complete"].astype(float)
    plain = pd.concat(
        cell(stage_a[stage_a["part"] == part], "naive", topk)["complete"].astype(float)
        for part, topk in as_many_tokens(stage_a).items()
    )
    return f"{judge.sum():.0f} and {plain.sum():.0f} of {len(judge)}: {points(*ends(compared(judge, plain)))}"


def means_table(rows: pd.DataFrame) -> str:
    """Return a line a system."""
    lines = [
        [
            str(name),
            *(_interval(part[figure].tolist()) for figure in FIGURES),
            f"{(part['status'] == 'refused').sum()}",
            f"{(~part['status'].isin(['answered', 'refused'])).sum()}",
            f"{(part['cut_off'] > 0).sum()}",
            f"{part['evidence'].sum():.0f}",
            f"{part['calls'].mean():.1f}",
            f"{part['tokens'].mean():,.0f}",
            f"{part['written'].mean():,.0f}",
            f"{part['seconds'].median():.0f}",
        ]
        for name, part in rows.groupby("system", sort=False)
    ]
    counts = ["refused", "failed", "cut off", "evidence complete"]
    costs = ["calls", "prompt tokens", "tokens written", "seconds, median"]
    return table(["system", *FIGURES.values(), *counts, *costs], lines)


def searched_again(rows: pd.DataFrame) -> str:
    """Say how often systems that may search again did, by their calls, and what self-ask writes that is not cut off."""
    ircot, self_ask = (rows[rows["system"] == name] for name in NAMES[-2:])
    once, twice, thrice = (int((self_ask["calls"] == calls).sum()) for calls in _SELF_ASK)
    whole = self_ask[self_ask["cut_off"] == 0]
    again, cut_off = int((ircot["calls"] > _ONE_SEARCH).sum()), len(self_ask) - len(whole)
    return (
        f"Ircot searched again for {again} of {len(ircot)} questions; where it does not, its reader is asked what that "
        "of three passages is asked, and answers the same. Self-ask searched again once "
        f"for {once} questions, twice for {twice} and three times for {thrice}. It wrote "
        f"{whole['written'].mean():,.0f} tokens a question without those ({cut_off}) in which a reply was cut off."
    )


def sets_table(rows: pd.DataFrame) -> str:
    """Return a line a system: by data set."""
    lines = [
        [
            str(name),
            *(
                cell
                for each in _TITLES
                for of in [part[part["part"] == each]]
                for cell in (_mean(of["f1"]), f"{of['evidence'].sum():.0f}", f"{of['tokens'].mean():,.0f}")
            ),
        ]
        for name, part in rows.groupby("system", sort=False)
    ]
    figures = "F1", "evidence complete", "prompt tokens"
    return table(["system", *(f"{title}: {figure}" for title in _TITLES.values() for figure in figures)], lines)


def readers_table(rows: pd.DataFrame) -> str:
    """Return a line a system: by whether its own readers, and those of plain retrieval, saw all evidence."""
    plain = rows[rows["system"] == NAMES[0]]
    enough = set(plain.loc[plain["evidence"] == 1, "id"])
    lines = [
        [
            str(name),
            *(
                f"{_mean(each['f1'])} ({len(each)})"
                for each in (part[part["evidence"] == 1], part[part["evidence"] == 0])
            ),
            *(_mean(part.loc[part["id"].isin(enough) == is_enough, "f1"]) for is_enough in (True, False)),
        ]
        for name, part in rows.groupby("system", sort=False)
    ]
    same = (
        f"F1 on the {len(enough)} questions that three passages suffice for",
        f"on the other {len(plain) - len(enough)}",
    )
    return table(["system", "F1 with all evidence", "without", *same], lines)


def differences_table(rows: pd.DataFrame) -> str:
    """Return a line for each system beside the judge."""
    sets = {f"F1, {title}": rows[rows["part"] == part] for part, title in _TITLES.items()}
    lines = [
        [
            f"judge minus {name}",
            *(_difference(rows, JUDGE, name, figure) for figure in FIGURES),
            *(_difference(part, JUDGE, name, "f1") for part in sets.values()),
        ]
        for name in dict.fromkeys(rows["system"])
        if name != JUDGE
    ]
    return table(["in points", *FIGURES.values(), *sets], lines)


def _mean(values: pd.Series) -> str:
    return f"{100 * values.mean():.1f}" if len(values) else "-"


def _interval(values: Sequence[float]) -> str:
    found = mean_interval(list(values), scale="share")
    return f"{100 * found.mean:.1f} ({100 * (found.low or 0):.1f} to {100 * (found.high or 0):.1f})"


def _difference(rows: pd.DataFrame, one: str, other: str, figure: str) -> str:
    """Say a difference between two systems."""
    return points(*ends(_compared(rows, one, other, figure)))


def _compared(rows: pd.DataFrame, one: str, other: str, figure: str) -> PairedComparison:
    """Compare two systems question by question."""
    wide = rows.pivot(index="id", columns="system", values=figure)
    test = "permutation" if figure == "f1" else "mcnemar"
    return compare_paired(wide[one].tolist(), wide[other].tolist(), metric=figure, test=test)
