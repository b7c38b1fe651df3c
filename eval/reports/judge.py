"""Judge figures in words and tables: the sections of a report on verdicts and on labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from ...graphs.drawing.words import count_of
from ..calibration.judge_figures import GOLD_SHARES, VERDICTS, Estimate, GoldShare, JudgeFigures, VerdictName
from ..calibration.labelled_figures import SCORES, LabelledFigures
from ..calibration.reliability import ReliabilityBin
from ..labels.store import Label
from ..labels.summary import summary_lines
from ..tables.table import Block, Cell, Section, Table, estimate_cell

MIN_QUESTIONS = 20
"""Fewest questions with both gold and other chunks for a finding about a judge."""
DOMINANT_SHARE = 0.70
UNDESERVED_SHARE = 0.10
UNKNOWN_SHARE = 0.10

_DESERVED: dict[VerdictName, GoldShare] = dict(zip(VERDICTS, GOLD_SHARES, strict=False))
_GOLD_NAMES: dict[GoldShare, str] = {"none": "no gold", "some": "some of the gold", "all": "all of the gold"}


def judge_findings(figures: JudgeFigures) -> tuple[str, ...]:
    """List warnings about a judge, a sentence each; empty without any.

    A judge hardly discriminates if it gives one verdict to more than 70 % of the chunks, and to at least 10 points more
    than deserve it. Its scale looks inverted if it rates gold chunks below others, or gives them a 0 more often, beyond
    chance. Fewer than ``MIN_QUESTIONS`` questions give that as the only finding.
    """
    if figures.ranked_questions < MIN_QUESTIONS:
        return (
            f"Too little to tell: {figures.ranked_questions} questions have both gold and other chunks, and "
            f"{MIN_QUESTIONS} are needed.",
        )
    return (*_dominance(figures), *_discrimination(figures), *_unknown(figures))


def judge_documents(judges: Mapping[str, JudgeFigures]) -> dict[str, object]:
    """Return figures and findings by system, as plain data for ``json.dumps``."""
    return {
        system: {**asdict(figures), "findings": list(judge_findings(figures))} for system, figures in judges.items()
    }


def judge_section(system: str, figures: JudgeFigures) -> Section:
    """Return the section on the judge of one system: confusion, figures with 95 % intervals, findings."""
    rows: list[list[Cell | str]] = [
        [
            verdict,
            *(str(figures.confusion[verdict][gold]) for gold in GOLD_SHARES),
            _shown(figures.shares[verdict], 100, 1),
        ]
        for verdict in VERDICTS
    ]
    named = {
        "Cohen's kappa": figures.kappa,
        "AUC within the question": figures.auc_within,
        "AUC over all questions": figures.auc_over,
        "expected calibration error": figures.calibration_error,
    }
    shown = [f"{name} {_shown(estimate, 1, 3)}" for name, estimate in named.items() if estimate is not None]
    blocks: list[Block] = [
        Table.of(["verdict", *_GOLD_NAMES.values(), "share"], rows),
        f"{figures.chunks} chunks that {figures.questions} questions found themselves; those of sub-runs are left out, "
        "since their gold is unknown. Shares in per cent; in brackets 95 % intervals.",
        *(["; ".join(shown) + "."] if shown else []),
        *_reliability(figures),
        *(f"**{finding}**" for finding in judge_findings(figures)),
    ]
    return Section(title=f"Verdicts of {system}", blocks=tuple(blocks))


def labels_section(labels: Sequence[Label], judges: Mapping[str, LabelledFigures]) -> Section:
    """Return the section on labels by hand: their annotators, and each judge by them."""
    blocks: list[Block] = ["\n".join(f"- {line}" for line in summary_lines(labels))]
    for system, figures in judges.items():
        rows = [
            [verdict, *(str(figures.counts[verdict][score]) for score in SCORES)]
            for verdict in VERDICTS
            if any(figures.counts[verdict].values())
        ]
        named = {
            "Cohen's kappa": figures.kappa,
            "share that is right": figures.same,
            "needed passages kept": figures.kept,
            "AUC of P(needed)": figures.auc,
        }
        shown = [f"{name} {_shown(estimate, 1, 3)}" for name, estimate in named.items() if estimate is not None]
        blocks += [
            Table.of([f"verdict of {system}", *(f"label {score}" for score in SCORES)], rows),
            f"{count_of(figures.passages, 'labelled passage')} of {count_of(figures.questions, 'question')}, those of "
            "sub-runs included. As many are labelled for each verdict; what follows weighs each verdict by its share "
            "in the run, with 95 % intervals over questions.",
            "; ".join(shown) + ".",
        ]
    return Section(title="Labels by hand", blocks=tuple(blocks))


def _dominance(figures: JudgeFigures) -> Iterator[str]:
    for verdict, deserved in _DESERVED.items():
        share = figures.shares[verdict].value
        owed = sum(counts[deserved] for counts in figures.confusion.values()) / figures.chunks
        if share > DOMINANT_SHARE and share - owed >= UNDESERVED_SHARE:
            yield f"It hardly discriminates: it gives {verdict} to {share:.0%} of the chunks; {owed:.0%} deserve it."


def _discrimination(figures: JudgeFigures) -> Iterator[str]:
    auc, gap = figures.auc_within, figures.zero_gap
    if auc is None or auc.low is None or auc.high is None:
        return
    if auc.high < 0.5:
        yield f"Its scale looks inverted: it rates gold chunks below others (AUC within the question {auc.value:.2f})."
    elif gap is not None and gap.low is not None and gap.low > 0:
        yield f"Its scale looks inverted: it gives 0 to gold chunks {gap.value:.0%} more often than to others."
    elif auc.low <= 0.5:
        yield (
            "It was not shown to tell gold chunks from others: the interval of its AUC within the question, "
            f"{auc.low:.2f} to {auc.high:.2f}, holds .5."
        )


def _unknown(figures: JudgeFigures) -> Iterator[str]:
    share = figures.shares["unknown"].value
    if share > UNKNOWN_SHARE:
        yield f"It failed on {share:.0%} of the chunks."


def _reliability(figures: JudgeFigures) -> Iterator[Block]:
    if not figures.reliability:
        return
    if figures.reliability_before:
        yield from ("Before calibration:", reliability_table(figures.reliability_before), "Calibrated:")
    yield reliability_table(figures.reliability)


def reliability_table(bins: Sequence[ReliabilityBin]) -> Table:
    """Return a table with a row for each bin: how often gold was predicted, and how often it was there."""
    rows = [
        [f"{each.low:.1f} to {each.high:.1f}", str(each.chunks), f"{each.predicted:.2f}", f"{each.observed:.2f}"]
        for each in bins
    ]
    return Table.of(["P(needed)", "chunks", "mean", "gold"], rows)


def _shown(estimate: Estimate, scale: int, digits: int) -> Cell:
    return estimate_cell(estimate.value, estimate.low, estimate.high, lambda value: f"{value * scale:.{digits}f}")
