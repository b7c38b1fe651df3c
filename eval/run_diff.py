"""Two runs, question by question: where their search trees part, and what that did to exact match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from ..graphs.drawing.html import html_page
from ..graphs.drawing.words import count_of
from ..graphs.rag.search_tree import SearchTree
from ..graphs.rag.tree_diff import TreeDiff
from ..graphs.tree.differences import Difference
from ..modules.errors import SettingsError
from ..modules.storage.texts import html_text
from . import reports
from .reports.loaded_run import LoadedRun, load_run, score_rows
from .rows.store import RunRow
from .tables.html import table_html
from .tables.table import Table

ALIKE = "alike"
NO_TREE = "without a tree"
_HEAD = ("they part at", "questions", "EM A", "EM B", "won", "lost")


@dataclass(frozen=True, kw_only=True)
class QuestionDiff:
    """One question in two runs."""

    question_id: str
    repeat: int
    question: str
    thread_a: str
    thread_b: str
    answer_a: str
    answer_b: str
    em_a: float | None
    """None without a gold answer."""
    em_b: float | None
    first: Difference | None
    """Where the trees part; None if they are alike, or one is missing."""
    differences: int
    has_trees: bool = True

    @property
    def parting(self) -> str:
        """Where the trees part, as a group: "depth 0, verdict", "alike" or "without a tree"."""
        if not self.has_trees:
            return NO_TREE
        return ALIKE if self.first is None else f"depth {self.first.depth}, {self.first.kind.replace('_', '-')}"

    @property
    def effect(self) -> float | None:
        """Exact match of the second run minus that of the first; None without a gold answer."""
        return None if self.em_a is None or self.em_b is None else self.em_b - self.em_a


@dataclass(frozen=True, kw_only=True)
class RunDiff:
    """Two runs over the same questions; a notebook shows the table of where they part.

    ::

        diff = diff_runs("runs/a", "runs/b")
        print(diff)
        diff.tree("bridge-17").to_html()
    """

    name_a: str
    name_b: str
    questions: tuple[QuestionDiff, ...]
    """Those that both runs asked, in the order of the first."""
    left_out: int
    """Questions that only one of them asked."""
    _runs: tuple[LoadedRun, LoadedRun] = field(repr=False, compare=False)

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each kind of parting, the commonest first: questions, mean exact match, won and lost."""
        groups: dict[str, list[QuestionDiff]] = {}
        for each in self.questions:
            groups.setdefault(each.parting, []).append(each)
        rows = [_group_row(name, group) for name, group in sorted(groups.items(), key=lambda item: -len(item[1]))]
        return pd.DataFrame([*rows, _group_row("all", self.questions)], columns=[*_HEAD])

    def tree(self, question_id: str, *, repeat: int = 0) -> TreeDiff:
        """Compare the two trees of a question.

        Raises:
            SettingsError: The question is not among those of both runs, or has no tree.
        """
        for each in self.questions:
            if (each.question_id, each.repeat) == (question_id, repeat):
                a, b = _trees(self._runs, each.thread_a, each.thread_b)
                if a is not None and b is not None:
                    return a.diff(b)
        raise SettingsError(f"No two trees of the question {question_id!r}, repeat {repeat}, are in both runs.")

    def to_document(self) -> dict[str, object]:
        """Return the comparison as plain data for ``json.dumps``."""
        questions = [{**asdict(each), "parting": each.parting, "effect": each.effect} for each in self.questions]
        table = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        return {"runs": [self.name_a, self.name_b], "left_out": self.left_out, "table": table, "questions": questions}

    def to_text(self) -> str:
        """Return the table, and the questions won and lost with where their trees part."""
        shown = self.table.to_string(index=False, na_rep="-", float_format="{:.3f}".format)
        return "\n".join([f"A {self.name_a} · B {self.name_b}", shown, *self._changed_lines(), *self._remarks()])

    def to_html(self) -> str:
        """Draw the table and all questions whose trees part as one HTML page."""
        rows = [[_cell(cell) for cell in row] for row in self.table.itertuples(index=False)]
        head = ("question", "they part at", "A", "B", "EM A", "EM B")
        parted = [_question_cells(each) for each in self.questions if each.first]
        title = html_text(f"{self.name_a} and {self.name_b}")
        remarks = "".join(f"<p>{html_text(remark)}</p>" for remark in self._remarks())
        body = f"<header><h1>{title}</h1>{remarks}</header><main><section><h2>Where they part</h2>"
        body += f"{table_html(Table.of(_HEAD, rows))}</section><section><h2>Questions</h2>"
        body += f"{table_html(Table.of(head, parted))}</section></main>"
        return html_page(reports.__name__, title=title, body=body)

    def _repr_html_(self) -> str:
        shown: str = self.table.to_html(index=False, na_rep="-", float_format="{:.3f}".format)
        return shown

    def __str__(self) -> str:
        return self.to_text()

    def _changed_lines(self) -> Iterator[str]:
        for each in self.questions:
            if each.effect:
                word = "won " if each.effect > 0 else "lost"
                yield f"{word} {each.question_id} ({each.parting}): {each.answer_a} → {each.answer_b}"

    def _remarks(self) -> Iterator[str]:
        if self.left_out:
            yield f"{count_of(self.left_out, 'question')} of one run alone left out."


def diff_runs(a: Path | str, b: Path | str, *, systems: Sequence[str] | None = None) -> RunDiff:
    """Compare the search trees of two runs, question by question; it reads every tree once.

    ::

        print(evaluation.diff_runs("runs/a", "runs/b", systems=("judge",)))

    Args:
        a: A run directory.
        b: Another, or the same for two of its systems.
        systems: One system of each run, ``("judge", "naive")``, or one of both, ``("judge",)``; None takes the one that
            both have, or the only one of each.

    Raises:
        LoadingError: One of them is no run, or a tree is damaged.
        SettingsError: It is not clear which systems to compare.
    """
    runs = load_run(Path(a)), load_run(Path(b))
    names = _systems(runs, systems)
    rows_a, rows_b = (_rows_of(run, name) for run, name in zip(runs, names, strict=True))
    em_a, em_b = (_exact_matches(run, name) for run, name in zip(runs, names, strict=True))
    return RunDiff(
        name_a=f"{a} {names[0]}",
        name_b=f"{b} {names[1]}",
        questions=tuple(
            _question_diff(runs, row, rows_b[place], em_a.get(place), em_b.get(place))
            for place, row in rows_a.items()
            if place in rows_b
        ),
        left_out=len(rows_a.keys() ^ rows_b.keys()),
        _runs=runs,
    )


def _systems(runs: tuple[LoadedRun, LoadedRun], given: Sequence[str] | None) -> tuple[str, str]:
    """Return the system of each run."""
    there = [list(dict.fromkeys(row.system for row in run.rows)) for run in runs]
    if given is not None:
        chosen = (given[0], given[-1]) if 1 <= len(given) <= 2 else ("", "")
    else:
        shared = [name for name in there[0] if name in there[1]]
        alone = [names[0] for names in there if len(names) == 1]
        chosen = (shared[0], shared[0]) if len(shared) == 1 else (alone[0], alone[-1]) if len(alone) == 2 else ("", "")
    for run, names, name in zip(runs, there, chosen, strict=True):
        if name not in names:
            raise SettingsError(
                f"Which systems are to be compared? {run.folder} has: {', '.join(names)}. Name one of both, or one of "
                "each: --systems judge, or --systems naive,judge."
            )
    return chosen


def _rows_of(run: LoadedRun, system: str) -> dict[tuple[str, int], RunRow]:
    return {(row.question_id, row.repeat): row for row in run.rows if row.system == system}


def _exact_matches(run: LoadedRun, system: str) -> Mapping[tuple[str, int], float]:
    frame = score_rows(run)
    part = frame[(frame["system"] == system) & frame["em"].notna()]
    return {(str(each.question_id), int(each.repeat)): float(each.em) for each in part.itertuples()}


def _trees(runs: tuple[LoadedRun, LoadedRun], a: str, b: str) -> tuple[SearchTree | None, SearchTree | None]:
    return runs[0].trees.read(a), runs[1].trees.read(b)


def _question_diff(
    runs: tuple[LoadedRun, LoadedRun], a: RunRow, b: RunRow, em_a: float | None, em_b: float | None
) -> QuestionDiff:
    trees = _trees(runs, a.thread_id, b.thread_id)
    diff = trees[0].diff(trees[1]) if trees[0] is not None and trees[1] is not None else None
    return QuestionDiff(
        question_id=a.question_id,
        repeat=a.repeat,
        question=a.question,
        thread_a=a.thread_id,
        thread_b=b.thread_id,
        answer_a=a.prediction,
        answer_b=b.prediction,
        em_a=em_a,
        em_b=em_b,
        first=diff.first if diff else None,
        differences=len(diff.differences) if diff else 0,
        has_trees=diff is not None,
    )


def _group_row(name: str, group: Sequence[QuestionDiff]) -> list[object]:
    scored = [(each.em_a, each.em_b) for each in group if each.em_a is not None and each.em_b is not None]
    means = [sum(pair[side] for pair in scored) / len(scored) if scored else None for side in (0, 1)]
    effects = [b - a for a, b in scored]
    return [name, len(group), *means, sum(effect > 0 for effect in effects), sum(effect < 0 for effect in effects)]


def _question_cells(each: QuestionDiff) -> list[str]:
    scores = [_cell(each.em_a), _cell(each.em_b)]
    return [f"{each.question_id}: {each.question}", each.parting, each.answer_a, each.answer_b, *scores]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if value == value else "-"  # noqa: PLR0124 - not a number
    return "-" if value is None else str(value)
