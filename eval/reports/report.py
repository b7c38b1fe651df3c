"""The report of a run: Markdown for readers, frames and plain data for programs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path

import pandas as pd

from ...graphs.drawing.words import count_of
from ...modules.calls.prices import Cost
from ...modules.calls.prompts import DEFAULT_PROMPTS, Prompts
from ...modules.prompts.writing import diff_of
from ...modules.settings import Settings
from ..calibration.judge_figures import JudgeFigures, judges_of
from ..calibration.labelled_figures import LabelledFigures, labelled_figures
from ..labels.judgements import judgements_of
from ..labels.store import Label, LabelStore
from ..metrics.answers import ANSWER_METRICS_VERSION
from ..metrics.outcomes import PRIMARY
from ..rows.cautions import run_cautions
from ..rows.code_version import code_versions_in, mixed_versions
from ..rows.provenance import Provenance, provenance_of, provenance_words
from ..rows.store import Manifest, part_of
from ..runs.manifest import accepted_changes
from ..tables.html import section_html
from ..tables.markdown import sections_markdown
from ..tables.narrow import sections_narrow
from ..tables.table import Block, Section
from .compare import Comparison, compare_splits, compare_systems
from .conversation import conversation_frame, conversation_section
from .failures import FailureKind, caveat_counts, caveat_remarks, completeness_counts, damage_remarks, failure_kind
from .frames import (
    ANSWER_METRICS,
    CONTEXT_METRICS,
    COST_METRICS,
    SAVED_BY_SHARING,
    common_frame,
    failure_frame,
    ks_of,
    records_of,
    retrieval_metrics,
    system_frame,
)
from .judge import judge_documents, judge_section, labels_section
from .loaded_run import (
    LoadedRun,
    load_run,
    lost_trees,
    missing_answers,
    paid_by_system,
    paid_for_pilot,
    score_rows,
)
from .means import noise_frame, noise_remarks, split_frame
from .own_scores import own_columns_in, own_section
from .ragas import missing_counts, ragas_columns_in, ragas_section
from .system_table import common_blocks, count_remarks, system_table
from .verdicts import comparison_frame

_DOUBTS_SHOWN = 5
SPLIT_METRICS = ("em", "f1")
SHOWN_COSTS = (
    "llm_calls",
    "paid_llm_calls",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "sub_runs",
    "seconds",
)
"""The costs in the table of systems, unless the experiment names its metrics."""

LACKING_WHY = "recall@k, all@k and ndcg@k end at topk, and scores of one's own begin with `judgetree eval score`."


@dataclass(frozen=True, kw_only=True)
class Report:
    """Scores, means, costs and findings of a run."""

    run: Path
    dataset: str
    questions: pd.DataFrame
    """One row per question; see ``frames.question_frame``."""
    systems: pd.DataFrame
    """Means over each system's own questions; see ``frames.system_frame``."""
    common: pd.DataFrame
    """Means over common questions, where those of ``systems`` are not comparable; see ``frames.common_frame``."""
    splits: pd.DataFrame
    """Means by kind of question; see ``means.split_frame``."""
    failures: pd.DataFrame
    """Wrong answers by cause; see ``frames.failure_frame``."""
    noise: pd.DataFrame
    """Variation between repeats; see ``means.noise_frame``. Empty without repeats."""
    judges: Mapping[str, JudgeFigures]
    """Figures of the judge of each system that has one."""
    labels: tuple[Label, ...] = ()
    """Labels by hand, replaced ones included."""
    labelled: Mapping[str, LabelledFigures] = field(default_factory=dict)
    """Figures of the same judges by those labels; empty without."""
    paid: Mapping[str, Cost]
    """Cost of each system's answers, replaced attempts included."""
    paid_for_pilot: Cost | None = None
    """Cost of the pilot that matched budgets; None without one."""
    asked_again: int = 0
    """Number of answers replaced by a later attempt."""
    missing: int = 0
    """Number of answers that the run still lacks."""
    lost_trees: int = 0
    """Number of answers whose search tree is no longer in the run."""
    files: tuple[Path, ...]
    """Files that were written."""
    conversation: pd.DataFrame
    """Figures of dialogues; see ``conversation.conversation_frame``. Empty without dialogues."""
    conversation_section: Section | None = None
    """The section "Conversation"; None without dialogues."""
    provenance: Provenance = field(default_factory=dict)
    """Data set, sample, models, search, version and command; see ``provenance_of``."""
    cautions: tuple[str, ...] = ()
    """Sentences that bear on every figure; see ``run_cautions``."""
    remarks: tuple[str, ...] = ()
    """Paragraphs of Markdown about rows that were left out, and rows of several code versions."""
    questions_read: Mapping[str, object] = field(default_factory=dict)
    """What was read of a file of one's own questions (``QuestionsRead``); empty for other data sets."""
    prompts: Prompts = DEFAULT_PROMPTS
    """Prompts of one's own that the run used."""
    baseline: str | None = None
    """Baseline of the page's comparisons; see ``compare.compare_runs``."""
    primary: str = PRIMARY
    """Primary outcome of the comparisons."""
    shown: tuple[str, ...]
    """Metrics of ``systems`` shown in the table, in order."""
    lacking: tuple[str, ...] = ()
    """Metrics that the experiment names, and that the run has no scores of."""

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Paired comparisons of the complete rows with the baseline; computed when first asked for, in seconds."""
        return tuple(compare_systems(self.run, self.questions, baseline=self.baseline, primary=self.primary))

    @cached_property
    def split_comparisons(self) -> tuple[Comparison, ...]:
        """The same on each kind of question; see ``compare.compare_splits``."""
        return tuple(compare_splits(self.run, self.questions, baseline=self.baseline))

    def to_markdown(self) -> str:
        """Write the report in Markdown: the table of systems with 95 % intervals, then optional sections."""
        return sections_markdown(self.sections())

    def to_text(self, width: int = 100) -> str:
        """Write the report for lines of so many characters: a table that is wider is turned and cut into parts."""
        return sections_narrow(self.sections(), width)

    def _repr_html_(self) -> str:
        return "".join(map(section_html, self.sections()))

    def sections(self, *, made_of: bool = True) -> list[Section]:
        """Return the parts of the report: first the data set's name, the table of systems and remarks on it.

        ``made_of`` ends these with the provenance, which a page has at its top.
        """
        optional = (
            ragas_section(self.questions, self.systems, self.common),
            own_section(self.questions, self.systems),
            self.conversation_section,
            *(judge_section(system, figures) for system, figures in self.judges.items()),
            labels_section(self.labels, self.labelled) if self.labels else None,
            _prompt_section(self.prompts) if self.prompts else None,
        )
        blocks = (*self._blocks(), *([provenance_words(self.provenance)] if made_of and self.provenance else ()))
        return [Section(title=self.dataset, blocks=blocks), *filter(None, optional)]

    def _blocks(self) -> Iterator[Block]:
        yield system_table(self.questions, self.systems, self.shown)
        yield from (f"**{each}**" for each in self.cautions)
        yield from count_remarks(self.questions, self.missing)
        yield from common_blocks(self.questions, self.common, self.shown)
        yield from self._lacking_remarks()
        yield (
            "Means over n questions; in brackets 95 % intervals (Wilson's where all values are 0 or 1, else the "
            "bootstrap's), and n where it is another. EM, F1 and supporting shares in per cent; calls, cost, sub-runs "
            "and seconds a question. An answer that failed scores 0, though what was found counts; a refused "
            "unanswerable one 1."
        )
        yield from damage_remarks(self.questions)
        yield from caveat_remarks(self.questions)
        yield from _lost_remarks(self.lost_trees)
        yield from self.remarks
        yield (
            "Calls, cost and seconds are those of all calls, as if none had come out of the cache. "
            f"Paid in all: {_paid_in_all(self.paid, self.asked_again)}; {_cached_in_all(self.questions)}."
            f"{_pilot_words(self.paid_for_pilot)}"
        )
        yield from noise_remarks(self.noise)

    def _lacking_remarks(self) -> Iterator[str]:
        """Yield a paragraph on the metrics that the run lacks, and those that it has."""
        if self.lacking:
            there = ", ".join(dict.fromkeys(map(str, self.systems["metric"])))
            named = ", ".join(self.lacking)
            yield f"**The run lacks {named} of the experiment's metrics.** {LACKING_WHY} It has {there}."

    def to_document(self) -> dict[str, object]:
        """Return the report as plain data for ``json.dumps``."""
        return {
            "run": str(self.run),
            "dataset": self.dataset,
            "provenance": dict(self.provenance),
            "answer_metrics": ANSWER_METRICS_VERSION,
            "systems": records_of(self.systems),
            "completeness": completeness_counts(self.questions),
            "caveats": caveat_counts(self.questions),
            "cautions": list(self.cautions),
            "missing": self.missing,
            "lacking": list(self.lacking),
            "lost_trees": self.lost_trees,
            "questions_read": dict(self.questions_read) or None,
            "paid_for_pilot": self.paid_for_pilot.to_document() if self.paid_for_pilot else None,
            "paid": {name: cost.to_document() for name, cost in self.paid.items()},
            "common": records_of(self.common),
            "splits": records_of(self.splits),
            "comparisons": records_of(comparison_frame((*self.comparisons, *self.split_comparisons))),
            "failures": records_of(self.failures),
            "noise": records_of(self.noise),
            "conversation": records_of(self.conversation),
            "ragas_missing": missing_counts(self.questions),
            "judges": judge_documents(self.judges),
            "labelled_judges": {system: asdict(figures) for system, figures in self.labelled.items()},
            "prompts": self.prompts.to_document(),
        }


def load_report(
    folder: Path | str,
    *,
    baseline: str | None = None,
    settings: Settings | None = None,
    cut_offs: Collection[int] = (),
) -> Report:
    """Score the rows of a run directory and compute the intervals of its means; writes nothing.

    ::

        report = load_report("runs/a")
        print(report.systems)

    The prices are those of the settings' home; None reads environment and ``.env``. ``cut_offs`` are further ones of
    recall@k and all@k beside those of the experiment's metrics, as far as so many chunks were retrieved.

    Raises:
        UserError: The run, its data set or a search tree cannot be read.
    """
    return report_of(load_run(Path(folder), settings), baseline=baseline, cut_offs=cut_offs)


def report_of(run: LoadedRun, *, baseline: str | None = None, cut_offs: Collection[int] = ()) -> Report:
    """Score a loaded run; writes nothing. 500 questions of three systems take some seconds.

    Raises:
        LoadingError: The search tree of a wrong answer is damaged.
    """
    cut_offs = {*cut_offs, *_cut_offs_in(run.experiment.metrics or ())}
    questions, seed = score_rows(run, cut_offs), run.experiment.seed
    labels = LabelStore(run.folder).read()
    questions["failure"] = _failures(run)
    ks = ks_of(run.experiment.topk, cut_offs)
    known = (*ANSWER_METRICS, *retrieval_metrics(ks), *CONTEXT_METRICS, *COST_METRICS)
    metrics = [name for name in known if name in questions]
    for name in ("number_match", "evidence"):
        if not questions[name].notna().any():
            metrics.remove(name)
    if run.experiment.sharing != "off":
        metrics += [name for name in SAVED_BY_SHARING if name in questions]
    metrics += [*ragas_columns_in(questions), *own_columns_in(questions)]
    conversation = conversation_frame(questions, ks=ks, seed=seed)
    wanted = run.experiment.metrics or ()
    return Report(
        run=run.folder,
        dataset=run.experiment.dataset,
        questions=questions,
        systems=system_frame(questions, metrics, seed=seed),
        common=common_frame(questions, metrics, seed=seed),
        splits=split_frame(questions, SPLIT_METRICS, seed=seed),
        failures=failure_frame(questions),
        noise=noise_frame(questions),
        judges=judges_of(run.rows, run.dataset.questions, seed=seed),
        labels=tuple(labels),
        labelled=labelled_figures(run.rows, run.trees, judgements_of(labels).settled, seed=seed),
        paid=paid_by_system(run),
        paid_for_pilot=paid_for_pilot(run),
        asked_again=len(run.replaced),
        missing=missing_answers(run),
        lost_trees=lost_trees(run),
        files=(),
        conversation=conversation,
        conversation_section=conversation_section(conversation, ks=ks, history=run.experiment.history),
        provenance=provenance_of(
            run.manifest,
            dict.fromkeys(row.system for row in run.rows),
            asked=questions["question_id"].nunique(),
            there=len(run.dataset.questions),
        ),
        cautions=tuple(run_cautions(run.manifest, run.rows, len(run.dataset.questions))),
        remarks=tuple(_remarks(run.manifest, questions)),
        questions_read=part_of(run.manifest, "questions_read"),
        prompts=run.experiment.prompts or DEFAULT_PROMPTS,
        baseline=baseline or run.baseline,
        primary=run.experiment.primary,
        shown=tuple(each for each in wanted if each in metrics) or _own_choice(metrics, ks),
        lacking=tuple(each for each in wanted if each not in metrics),
    )


def _lost_remarks(lost: int) -> Iterator[str]:
    if lost:
        yield (
            f"**The search trees of {count_of(lost, 'answer')} are lost from trees.jsonl.** Figures of the rows stay; "
            'causes of errors are "other" without a tree, and what was labelled in it does not count.'
        )


def _remarks(manifest: Manifest, questions: pd.DataFrame) -> Iterator[str]:
    """Yield what bears on every figure: rows that were left out or may be misread, versions that are mixed."""
    malformed = manifest.get("malformed_rows")
    if isinstance(malformed, int) and malformed:
        rows = f"{count_of(malformed, 'row')} of the data set {'is' if malformed == 1 else 'are'}"
        yield f"**{rows} malformed and left out of every figure.**"
    yield from _doubts(part_of(manifest, "questions_read"))
    asked = questions.drop_duplicates("question_id")["number_match"]
    if asked.notna().any():
        yield (
            f"The gold answer of {int(asked.notna().sum()):,} of {count_of(len(asked), 'question')} is a number. Read "
            "`number match` there: to EM, as to the official scripts, -3.5 equals 35."
        )
    yield from mixed_versions(code_versions_in(manifest), questions["code"].value_counts().to_dict())
    if accepted := accepted_changes(manifest):
        yield f"**Rows of several versions may be mixed, since changes were accepted: {'; '.join(accepted)}.**"


def _doubts(read: Mapping[str, object]) -> Iterator[str]:
    """Yield what may have been meant otherwise in a file of questions, the most suspicious first."""
    doubts, rows = read.get("doubts"), read.get("doubtful_rows")
    if not isinstance(doubts, list) or not doubts:
        return
    if isinstance(rows, int) and rows:
        yield f"**{count_of(rows, 'row')} of the file of questions may be misread.** As the run found it:"
    else:
        yield "**The file of questions may be misread.** As the run found it:"
    more = [f"and {len(doubts) - _DOUBTS_SHOWN} more in its manifest"] if len(doubts) > _DOUBTS_SHOWN else []
    yield _fenced("\n".join([*map(str, doubts[:_DOUBTS_SHOWN]), *more]), "text")


def _fenced(text: str, kind: str) -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}{kind}\n{text}\n{fence}"


def _prompt_section(prompts: Prompts) -> Section:
    """Return the section on prompts of one's own: their names, and what they change in judgetree's."""
    changes = diff_of(DEFAULT_PROMPTS, prompts)
    title = f"Prompts of your own: {', '.join(prompts)}"
    return Section(title=title, blocks=(_fenced(changes, "diff"),), is_folded=True)


def _cut_offs_in(metrics: Iterable[str]) -> Iterator[int]:
    """Yield each k of recall@k, all@k and ndcg@k that is a whole number from 1 on."""
    for metric in metrics:
        if match := re.fullmatch(r"(?:recall|all|ndcg)@([1-9]\d{0,5})", metric):
            yield int(match[1])


def _own_choice(there: Collection[str], ks: Sequence[int]) -> tuple[str, ...]:
    saved = [name for name in SAVED_BY_SHARING if name in there]
    numbers = [name for name in ("number_match",) if name in there]
    found = "evidence" if "evidence" in there else "tree_all"
    return ("em", "f1", "cover_em", *numbers, f"all@{ks[0]}", found, *SHOWN_COSTS, *saved)


def _failures(run: LoadedRun) -> list[FailureKind | None]:
    """Classify each row of ``frames.question_frame``, in its order."""
    by_id = run.questions
    known = [(row, by_id[row.question_id]) for row in run.rows if row.question_id in by_id]
    return [failure_kind(row, question, partial(run.trees.read, row.thread_id)) for row, question in known]


def _paid_in_all(paid: Mapping[str, Cost], asked_again: int) -> str:
    amounts = list(dict.fromkeys(map(str, paid.values())))
    is_one = len(paid) > 1 and len(amounts) == 1
    costs = (
        f"{amounts[0]} for each system" if is_one else ", ".join(f"{system} {cost}" for system, cost in paid.items())
    )
    replaced = f" ({count_of(asked_again, 'answer')} that a later attempt replaced included, which no column counts)"
    return costs + (replaced if asked_again else "")


def _pilot_words(paid: Cost | None) -> str:
    return "" if paid is None else f" The pilot that matched budgets was paid apart: {paid}."


def _cached_in_all(questions: pd.DataFrame) -> str:
    """Describe the share of cached calls, and of calls with estimated tokens, if any."""
    columns = [questions.get(name) for name in ("llm_calls", "cached_llm_calls", "estimated_llm_calls")]
    calls, cached, estimated = (0.0 if column is None else float(column.sum()) for column in columns)
    share = f"{cached / calls if calls else 0:.0%} of the calls of these answers came out of the cache"
    return f"{share}, and the tokens of {estimated / calls:.0%} are estimates" if estimated else share
