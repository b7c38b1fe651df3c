"""The figures of the plan, computed again: the pilot's from what was kept of it, the screening's from its rows."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest

from experiments.batches import kept_file
from experiments.evidence import plan_of
from experiments.kept import read_kept
from judgetree.evaluation.metrics.power import detectable_difference, mcnemar_power

FOLDER = Path(__file__).parents[2] / "docs" / "experiments"
PAGE = " ".join((FOLDER / "plan.md").read_text(encoding="utf-8").split())
J = "judge(judge=embedding:writer=template"
NAIVE = "naive(topk={})"
SCREENED = {
    "naive, 3 / 4 / 5 / 6 passages": [("", NAIVE.format(k)) for k in (3, 4, 5, 6)],
    "naive, 10 / 15 passages": [("", NAIVE.format(k)) for k in (10, 15)],
    "naive, links as one more list of the search, 3 / 4 / 5 passages": [("links", NAIVE.format(k)) for k in (3, 4, 5)],
    "judge `embedding`, sub-questions by the template": [("", f"{J})")],
    "judge `embedding`, links, 2 / 3 / 4 / 5 passages": [
        ("", f"judge(topk=2; {J[6:]}; expansion=link)"),
        ("", f"{J}; expansion=link)"),
        ("", f"judge(topk=4; {J[6:]}; expansion=link)"),
        ("", f"judge(topk=5; {J[6:]}; expansion=link)"),
    ],
    "the same with 3 passages, links to 1 / 3 / 5 neighbours": [
        ("", f"{J}; expansion=link:neighbours={n})") for n in (1, 3, 5)
    ],
    "the same, two levels of links": [("", f"{J}; max_rec_depth=2; expansion=link)")],
    "the same, 500 / 700 tokens of evidence": [
        ("", f"{J}; max_rec_depth=2; expansion=link; evidence_tokens={n})") for n in (500, 700)
    ],
    "links and sub-questions": [("", f"{J}; expansion=both)")],
    "ircot with ideal thoughts, up to 3 rounds": [("", "ircot(max_rec_depth=3)")],
}


def test_the_plan_is_that_of_the_pilot() -> None:
    plan = plan_of(read_kept(kept_file("pilot", "local:")))

    assert f"takes {plan.calls:.1f} calls and {plan.tokens:,.0f} prompt tokens" in PAGE
    assert f"**{plan.topk} passages**" in PAGE
    assert plan.discordance == 0.5 and "differ in half of the questions" in PAGE
    assert plan.first_right == pytest.approx(1 / 7) and "One in seven first sub-questions" in PAGE
    powers = [mcnemar_power(200, discordance=0.5, difference=each) for each in (0.1, 0.15, 0.2)]
    assert "power of {:.2f}, 15 points with {:.2f} and 20 points with {:.2f}".format(*powers).replace("0.", ".") in PAGE
    least = detectable_difference(200, discordance=0.5)
    assert least is not None and f"four times in five is a little over {100 * least:.0f} points" in PAGE


@pytest.mark.parametrize("name", SCREENED)
def test_what_was_screened_is_that_of_its_rows(name: str) -> None:
    values: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (FOLDER / "screening.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for figure in ("evidence", "calls", "tokens"):
                values[row["list"], row["system"]][figure].append(float(row[figure]))
    found = re.search(rf"\| {re.escape(name)} \| ([^|]+) % \| ([^|]+) \| ([^|]+) \|", PAGE)
    assert found is not None
    places = [values[place] for place in SCREENED[name]]

    assert {len(each["tokens"]) for each in places} == {60}
    assert found[1].split(" / ") == [f"{100 * fmean(each['evidence']):.1f}" for each in places]
    assert [float(each) for each in found[2].split(" / ")] == pytest.approx([fmean(places[0]["calls"])], abs=0.051)
    assert [int(each.replace(",", "")) for each in found[3].split(" / ")] == pytest.approx(
        [fmean(each["tokens"]) for each in places], abs=0.51
    )
