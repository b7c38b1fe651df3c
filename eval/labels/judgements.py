"""What the annotators of a run agree on: one score for each passage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ...modules.judge.contract import Score
from ..rows.store import RunStore
from ..rows.trees import TreeStore
from .passages import distinct_passages, found_passages
from .store import FoundPassage, Label, LabelStore, newest_labels


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The score of a passage by hand."""

    passage: FoundPassage
    score: Score
    """2 = answers the query alone, 1 = holds a needed fact, 0 = does not help."""
    annotators: int
    """Number of annotators who gave this score."""
    weight: float = 1.0
    """Number of passages of its run that it stands for; see ``weighed_judgements``."""


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """The scores of all labelled passages."""

    settled: tuple[Judgement, ...]
    """In the order in which the passages were first labelled."""
    disputed: tuple[FoundPassage, ...]
    """Passages whose annotators gave two scores equally often."""
    undecided: tuple[FoundPassage, ...]
    """Passages of which no annotator could tell."""


def judgements_of(labels: Iterable[Label]) -> Judgements:
    """Settle each passage by the score that most of its annotators gave; labels without a score count for none."""
    by_passage: defaultdict[str, list[Label]] = defaultdict(list)
    for (key, _), label in newest_labels(labels).items():
        by_passage[key].append(label)
    settled: list[Judgement] = []
    disputed: list[FoundPassage] = []
    undecided: list[FoundPassage] = []
    for given in by_passage.values():
        passage, votes = given[0].passage, Counter(label.score for label in given if label.score is not None)
        ranked = votes.most_common(2)
        if not ranked:
            undecided.append(passage)
        elif len(ranked) == 2 and ranked[0][1] == ranked[1][1]:
            disputed.append(passage)
        else:
            settled.append(Judgement(passage=passage, score=ranked[0][0], annotators=ranked[0][1]))
    return Judgements(settled=tuple(settled), disputed=tuple(disputed), undecided=tuple(undecided))


def read_judgements(run: Path | str) -> Judgements:
    """Read the labels of a run directory and settle them; empty without labels.

    ::

        for judgement in read_judgements("runs/a").settled:
            print(judgement.score, judgement.passage.query, judgement.passage.text)

    Raises:
        LoadingError: The file of labels is damaged, or has another format.
    """
    return judgements_of(LabelStore(Path(run)).read())


def weighed_judgements(run: Path | str) -> list[Judgement]:
    """Settle the labels of a run, each with its weight: the passages of its verdict in the run, by the labelled ones.

    Labels are drawn by strata, so that rare verdicts are labelled more often than the run has them. It reads the run's
    trees, some seconds for a thousand of them.

    Raises:
        LoadingError: The labels, a row or a tree are damaged.
    """
    folder = Path(run)
    settled = read_judgements(folder).settled
    if not settled:
        return []
    found = found_passages(RunStore(folder).read_rows(), TreeStore(folder))
    there = Counter(each.verdict for each in distinct_passages(found))
    labelled = Counter(each.passage.verdict for each in settled)
    return [
        replace(each, weight=max(there[each.passage.verdict] / labelled[each.passage.verdict], 1.0)) for each in settled
    ]
