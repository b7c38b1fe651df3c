"""Right answers on the project's own questions, judge against naive, with the scripted model.

The scripted model knows what each passage holds, so this proves the machinery, not the method.
"""

from __future__ import annotations

from collections import defaultdict

from judgetree.evaluation.datasets.standards_qa import Question
from judgetree.graphs.session import RagSession
from judgetree.modules.settings import Settings

from .corpus import COLLECTION, ask_all, is_right, questions, scripted_standards
from .measurement import Row

Tally = dict[tuple[str, str], tuple[int, int]]
"""(language, type) to (right, all)."""


def tally(system: str, settings: Settings, rows: list[Question]) -> Tally:
    """Count the right answers by language and type."""
    with RagSession(COLLECTION, system=system, topk=3, max_rec_depth=3, settings=settings) as session:
        results = ask_all(session, [row.question for row in rows])
    counts: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for row, result in zip(rows, results, strict=True):
        counts[row.lang, row.type].append(is_right(row, result.answer, result.status))
    return {key: (sum(right), len(right)) for key, right in counts.items()}


def measure() -> list[Row]:
    """Measure each language and type of question."""
    with scripted_standards() as (_, settings):
        judge, naive = (tally(system, settings, questions()) for system in ("judge", "naive"))
    return [*_multi_hop(judge, naive), *_by_type(judge, naive), *_unanswerable(judge, naive)]


def _sum(counts: Tally, lang: str, types: tuple[str, ...]) -> tuple[int, int]:
    chosen = [counts[key] for key in counts if key[0] == lang and key[1] in types]
    return sum(right for right, _ in chosen), sum(total for _, total in chosen)


def _multi_hop(judge: Tally, naive: Tally) -> list[Row]:
    rows = []
    for lang in ("en", "zh"):
        right, total = _sum(judge, lang, ("2hop", "3hop"))
        naive_right, _ = _sum(naive, lang, ("2hop", "3hop"))
        rows.append(
            Row(
                f"{lang}, 2- and 3-hop questions answered right",
                f"judge {right}/{total} ({right / total:.0%}), naive {naive_right}/{total}",
                "judge ≥ 95 %",
                holds=right / total >= 0.95,
                values=(right / total * 100,),
                unit="%",
            )
        )
    return rows


def _by_type(judge: Tally, naive: Tally) -> list[Row]:
    return [
        Row(f"{lang}, {kind}", f"judge {judge[lang, kind][0]}/{judge[lang, kind][1]}, naive {naive[lang, kind][0]}")
        for lang, kind in sorted(judge)
        if kind != "unanswerable"
    ]


def _unanswerable(judge: Tally, naive: Tally) -> list[Row]:
    refused = [sum(counts[lang, "unanswerable"][0] for lang in ("en", "zh")) for counts in (judge, naive)]
    total = sum(judge[lang, "unanswerable"][1] for lang in ("en", "zh"))
    return [
        Row(
            "unanswerable questions refused",
            f"judge {refused[0]}/{total}, naive {refused[1]}/{total}",
            "all",
            holds=refused == [total, total],
        )
    ]
