"""Does judged recursion find evidence that retrieval with as many tokens does not? Figures and page, from ``kept/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from judgetree.evaluation.metrics.power import mcnemar_power
from judgetree.evaluation.metrics.statistics import (
    Equivalence,
    PairedComparison,
    adjust_comparisons,
    compare_paired,
    equivalence_of,
)

from .batches import kept_file, kept_folder
from .evidence_plot import draw
from .ideal_parts import PARTS, complete
from .kept import KeptQuestion, read_kept
from .outcomes import AGAIN, BEST_FIRST, BREADTH, BUDGET, BUDGETS, TEMPLATE, outcomes
from .pages import fill, fill_summary, p_words, points, table
from .questions import ids_of
from .record import STAGE_A
from .steps import steps_table, tries_of

MARGIN = 0.05
FEW_CALLS = 16
"""Budget at which an order of asking is compared, since not everything can be asked."""
PLANNED = 200


# --- the plan, from the pilot ---


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the pilot says before the first question of the comparison is asked."""

    topk: int
    """Least number of passages with which plain retrieval takes as many prompt tokens as the judge."""
    tokens: float
    """Prompt tokens a question of the judge."""
    calls: float
    discordance: float
    """Share of the questions on which exactly one of the two has all evidence."""
    first_right: float | None
    """Share of a needed passage's first questions that find a needed document that was missing."""

    def power(self, difference: float, questions: int = PLANNED) -> float:
        """Return the probability that a true difference is shown."""
        return mcnemar_power(questions, discordance=max(self.discordance, difference), difference=difference)


def plan_of(pilot: Sequence[KeptQuestion]) -> Plan:
    """Read the plan off the pilot."""
    rows = outcomes(pilot)
    judge, (topk,) = cell(rows, BREADTH, BUDGET), as_many_tokens(rows).values()
    differs = judge["complete"].ne(cell(rows, "naive", topk)["complete"])
    tries = tries_of(pilot)
    return Plan(
        topk=topk,
        tokens=float(judge["tokens"].mean()),
        calls=float(judge["calls"].mean()),
        discordance=float(differs.mean()),
        first_right=float(np.mean([each[0] for each in tries])) if tries else None,
    )


def as_many_tokens(rows: pd.DataFrame) -> dict[str, int]:
    """Return, by part, the least number of passages with which plain retrieval takes as many tokens as the judge.

    Raises:
        ValueError: So many passages are not kept.
    """
    found = {}
    for name, part in rows.groupby("part", sort=False):
        spent = cell(part, BREADTH, BUDGET)["tokens"].mean()
        plain = part[part["system"] == "naive"].groupby("budget")["tokens"].mean()
        if not (enough := [int(k) for k, tokens in plain.items() if tokens >= spent]):
            raise ValueError(
                f"{name}: {plain.index[-1]} passages take {plain.iloc[-1]:,.0f} tokens, below {spent:,.0f}."
            )
        found[str(name)] = enough[0]
    return found


def cell(rows: pd.DataFrame, system: str, budget: int) -> pd.DataFrame:
    """Return a system's rows within a budget, by question."""
    return rows[(rows["system"] == system) & (rows["budget"] == budget)].set_index("id")


# --- the comparisons ---


SETS = {"stage_a_hotpotqa": "HotpotQA", "stage_a_2wiki": "2WikiMultihopQA"}
JUDGE, MATCHED = "judge", "naive, as many tokens"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is found of a model."""

    rows: pd.DataFrame
    passages: Mapping[str, int]
    """With how many passages plain retrieval takes as many tokens as the judge, by part."""
    systems: Mapping[str, pd.DataFrame]
    """Rows of each system by its name on the page, a row a question in the same order."""
    primary: PairedComparison
    secondary: Mapping[str, PairedComparison]
    """Corrected for their number (Holm)."""
    order: Equivalence
    ideal: Mapping[str, float]
    """Share of the questions with all evidence, by what is ideal."""


def evidence_of(questions: Sequence[KeptQuestion], plan: Plan) -> Evidence:
    """Compare the systems as they were named before."""
    rows = outcomes(questions)
    passages = as_many_tokens(rows)
    systems = {
        "naive, 3 passages": cell(rows, "naive", 3),
        f"naive, {plan.topk} passages, as in the pilot": cell(rows, "naive", plan.topk),
        MATCHED: pd.concat(
            [cell(part, "naive", passages[str(name)]) for name, part in rows.groupby("part", sort=False)]
        ),
        JUDGE: cell(rows, BREADTH, BUDGET),
        "judge, again": cell(rows, AGAIN, BUDGET),
        "similarity and titles": cell(rows, TEMPLATE, BUDGET),
        f"judge, {FEW_CALLS} calls": cell(rows, BREADTH, FEW_CALLS),
        f"judge, best first, {FEW_CALLS} calls": cell(rows, BEST_FIRST, FEW_CALLS),
    }
    found = {name: each["complete"].astype(float) for name, each in systems.items()}
    judge, again = found[JUDGE], at_calls(rows, AGAIN, systems[JUDGE]["calls"].mean())
    best, few = found[f"judge, best first, {FEW_CALLS} calls"], found[f"judge, {FEW_CALLS} calls"]
    named = {
        "judge minus similarity and titles": compared(judge, found["similarity and titles"]),
        "again minus judge, at as many calls": compare_paired(
            list(again), list(judge), metric="evidence complete", test="permutation"
        ),
        f"best first minus breadth, {FEW_CALLS} calls": compared(best, few),
    }
    return Evidence(
        rows=rows,
        passages=passages,
        systems=systems,
        primary=compared(judge, found[MATCHED]),
        secondary=dict(zip(named, adjust_comparisons(list(named.values())), strict=True)),
        order=equivalence_of(list(best), list(few), margin=MARGIN, test="mcnemar"),
        ideal={part: complete(questions, part) / len(questions) for part in PARTS},
    )


def compared(ours: pd.Series, theirs: pd.Series) -> PairedComparison:
    """Compare evidence complete of two systems, by question."""
    return compare_paired(list(ours), list(theirs.loc[ours.index]), metric="evidence complete", test="mcnemar")


def at_calls(rows: pd.DataFrame, system: str, calls: float) -> pd.Series:
    """Return each question's outcome as the mix of two budgets that takes so many calls on average."""
    spent = [cell(rows, system, budget)["calls"].mean() for budget in BUDGETS]
    above = next((place for place, each in enumerate(spent) if each >= calls), len(spent) - 1)
    high = cell(rows, system, BUDGETS[above])["complete"].astype(float)
    if not above or spent[above] <= spent[above - 1]:
        return high
    share = min(1.0, (calls - spent[above - 1]) / (spent[above] - spent[above - 1]))
    return share * high + (1 - share) * cell(rows, system, BUDGETS[above - 1])["complete"].astype(float)


# --- the page ---


def summary(model: str, questions: int, found: Evidence | None) -> str:
    """Say the outcome in a sentence, once all questions are recorded; nothing of it before."""
    if found is None:
        return (
            f"**Not known yet: {questions} of the {PLANNED} questions are recorded.** "
            "Nothing of the outcome is computed before all of them are."
        )
    test, least = found.primary, found.primary.smallest_detectable
    shown = ("a gain" if test.difference.mean > 0 else "a loss") if test.p_value < 0.05 else "no difference is shown"
    judge, plain = (found.systems[name]["tokens"].mean() for name in (JUDGE, MATCHED))
    ideal = {part: f"{100 * share:.1f} %" for part, share in found.ideal.items()}
    return (
        f"**With sub-questions of a real model (`{model}`) {100 * test.mean_a:.1f} % of {questions} questions have "
        f"complete evidence, with plain retrieval of as many tokens {100 * test.mean_b:.1f} %: {points(*ends(test))} "
        f"points (p {p_words(test.p_value)}): {shown}.** They take {judge:,.0f} and {plain:,.0f} prompt tokens. The "
        f"smallest difference that so many questions show four times in five is {100 * (least or 1):.0f} points. With "
        f"an ideal judge in the model's place it would be {ideal['with an ideal judge']}, with an ideal writer of the "
        f"sub-questions {ideal['with an ideal writer']}, with both {ideal['with both']}."
    )


def ends(test: PairedComparison) -> tuple[float, float | None, float | None]:
    """Return the mean difference of a comparison, and the ends of its interval."""
    return test.difference.mean, test.difference.low, test.difference.high


def systems_table(found: Evidence) -> str:
    """Return a line a system."""
    lines = [
        [
            name,
            f"{100 * rows['complete'].mean():.1f} %",
            f"{rows['calls'].mean():.1f}",
            f"{rows['tokens'].mean():,.0f}",
            f"{rows['sub_runs'].mean():.1f}",
        ]
        for name, rows in found.systems.items()
    ]
    return table(["system", "evidence complete", "calls", "prompt tokens", "sub-questions"], lines)


def sets_table(found: Evidence) -> str:
    """Return a line for each data set, and for each kind of its questions."""
    judge, plain = found.systems[JUDGE], found.systems[MATCHED]
    lines = []
    for name, part in judge.groupby("part", sort=False):
        test = compared(part["complete"].astype(float), plain.loc[part.index, "complete"].astype(float))
        title = SETS.get(str(name), str(name))
        lines.append([title, f"{found.passages[str(name)]}", *_shares(part, plain), points(*ends(test))])
        lines += [
            [f"{title}, {kind}", "", *_shares(each, plain), ""] for kind, each in part.groupby("type", sort=False)
        ]
    heads = ["questions of", "passages", "number", "judge", "naive, as many tokens", "in points"]
    return table(heads, lines)


def _shares(judge: pd.DataFrame, plain: pd.DataFrame) -> list[str]:
    of = plain.loc[judge.index]
    return [f"{len(judge)}", *(f"{100 * each['complete'].mean():.1f} %" for each in (judge, of))]


def comparisons_table(found: Evidence) -> str:
    """Return a line a secondary comparison, and one of equivalence."""
    lines = [
        [name, points(*ends(test)), p_words(test.adjusted_p_value or test.p_value)]
        for name, test in found.secondary.items()
    ]
    order = found.order
    said = f"{100 * order.confidence:.0f} % interval {100 * (order.low or 0):+.1f} to {100 * (order.high or 0):+.1f}"
    shown = "shown" if order.is_shown else "not shown"
    lines.append([f"the same, equivalent within {100 * MARGIN:.0f} points", said, shown])
    return table(["comparison", "evidence complete, in points", "p after Holm's correction"], lines)


def is_whole(model: str) -> bool:
    """Return whether all questions are recorded."""
    return {each.id for each in _recorded(model)} == {each for name in STAGE_A for each in ids_of(name)}


def _recorded(model: str) -> list[KeptQuestion]:
    return [each for name in STAGE_A for each in read_kept(kept_file(name, model))]


def write_evidence(page: Path, model: str) -> None:
    """Write to a page, and to the CSV file beside it, what is known of a model."""
    questions = _recorded(model)
    if not is_whole(model):
        fill_summary(page, summary(kept_folder(model).name, len(questions), None))
        return
    found = evidence_of(questions, plan_of(read_kept(kept_file("pilot", model))))
    told = pd.concat([rows.assign(system=name) for name, rows in found.systems.items()]).drop(
        columns=["budget", "misses"]
    )
    told.to_csv(page.with_suffix(".csv"), lineterminator="\n")
    draw(found.rows, SETS, picture := page.with_suffix(".svg"))
    parts = {
        "summary": summary(kept_folder(model).name, len(questions), found),
        "systems": systems_table(found),
        "plot": f"![Evidence complete against prompt tokens, by data set]({picture.name})",
        "sets": sets_table(found),
        "tests": comparisons_table(found),
        "steps": steps_table(questions, found.ideal),
    }
    fill(page, parts)
