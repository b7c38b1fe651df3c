"""The labels of a run in words: how many there are, and how far their annotators agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...graphs.drawing.words import count_of
from .agreement import Agreement, agreements, counts_by_annotator
from .judgements import judgements_of
from .store import Label, newest_labels


def summary_lines(labels: Sequence[Label]) -> Iterator[str]:
    """Yield lines about the labels of a run: counts, Cohen's kappa of each pair of annotators, what is unsettled."""
    if not labels:
        yield "No labels yet."
        return
    for annotator, counts in counts_by_annotator(labels).items():
        shown = ", ".join(f"{count} × {score}" for score, count in counts.items() if count)
        yield f"{annotator}: {count_of(sum(counts.values()), 'passage')} ({shown})"
    yield from map(format_agreement, agreements(labels))
    found = judgements_of(labels)
    unsettled = [(found.disputed, "disputed"), (found.undecided, "of which nobody could tell")]
    more = "".join(f", {len(passages)} {words}" for passages, words in unsettled if passages)
    yield f"{count_of(len(found.settled), 'passage')} settled{more}"
    if changed := len(labels) - len(newest_labels(labels)):
        yield f"{count_of(changed, 'label')} replaced later, once verdict and gold had been shown"


def format_agreement(agreement: Agreement) -> str:
    """Describe the agreement of two raters in a line."""
    kappa = "undefined, all scores are the same"
    if agreement.kappa is not None:
        kappa = f"{agreement.kappa:.2f}"
        if agreement.low is not None and agreement.high is not None:
            kappa += f" ({agreement.low:.2f} to {agreement.high:.2f})"
    return (
        f"{agreement.one} and {agreement.two}: Cohen's kappa {kappa}, the same score for {agreement.same:.0%} of "
        f"{count_of(agreement.passages, 'passage')}"
    )
