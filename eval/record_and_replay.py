"""Calls that record an experiment's searches and replay them, for notebooks, scripts and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from .. import __version__
from ..graphs.config.limits import Limits
from ..graphs.search.depth import check_depth
from ..graphs.search.expansion_rule import follows_links
from ..graphs.threads.context import RagContext
from ..modules.calls.prices import load_prices
from ..modules.config.reading import EvidenceKind, EvidenceRanker
from ..modules.errors import LoadingError, SettingsError
from ..modules.judge.gold import SEE_GOLD
from ..modules.judge.noise import Noise
from ..modules.judge.sub_questions import ModelWriter
from ..modules.reader.evidence_choice import EvidenceChoice
from ..modules.settings import Settings, load_settings
from ..modules.specs import parse_spec
from ..modules.storage.file_locks import lock_folder
from .replay.noisy_world import NoisyWorld
from .replay.outcome import Replay
from .replay.play import Episode
from .replay.readers import ReadingCost, ReplayedReading, ReplayReaders
from .replay.recorder import Coverage
from .replay.recorder import record as record_questions
from .replay.recording import FILE_NAME, SearchRecording
from .replay.replays import BUDGETS, POLICIES, checked_budgets, named_policies, replay
from .replay.shown import ShownTrees
from .replay.summary import summarize
from .replay.world import ReplayEnvironment
from .rows.payments import Payments
from .runs.batch_run import with_experiment
from .runs.experiment import Experiment
from .runs.jobs import choose_questions, dataset_of
from .runs.limits import Spending
from .runs.services import Services


def record(
    experiment: Experiment,
    *,
    out: Path | str,
    depth: int = 1,
    width: int = 1,
    settings: Settings | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_setup: Callable[[int, int, str], None] | None = None,
) -> Coverage:
    """Record what any policy could ask of an experiment's questions, in ``recording.jsonl`` of a folder.

    Every chunk asks on, whatever its verdict, to the given depth. The same call continues a stopped recording, and asks
    again for what failed: verdicts that are unknown, and questions that could not be written. The cost grows with (topk
    times width) to the power of depth; ``max_llm_calls`` of the experiment bounds each question.

    ::

        experiment = evaluation.load_experiment(dataset="hotpotqa:dev.json", sample=50, judge="batched")
        print(evaluation.record(experiment, out="runs/recorded", depth=2, width=2))

    Args:
        experiment: Questions, search, judge and models.
        out: The folder, created if missing.
        depth: Levels of sub-questions.
        width: Tries of each chunk.
        settings: None reads environment and ``.env``.
        on_progress: Called with (questions done, questions in all).
        on_setup: Called with (done, total, stage) while the corpus is indexed or a local model is loaded.

    Raises:
        ModelSetupError: As many questions as ``experiment.fail_after`` says, or all, have no verdict.
        UserError: A wrong data set or setting, or a folder that is in use or holds the recording of something else.
    """
    if follows_links(experiment.expansion):
        raise SettingsError(
            f"expansion={experiment.expansion!r} cannot be recorded: a recording holds what sub-questions find. Leave "
            "it out, and compare links by eval run."
        )
    check_depth(depth, name="depth")
    settings = with_experiment(settings or load_settings(), experiment)
    whole = dataset_of(experiment)
    dataset = choose_questions(whole, experiment)
    spending = Spending(experiment, prices=load_prices(settings.home))
    with (
        lock_folder(Path(out), remedy="Wait for it, or give another folder."),
        Services(experiment, whole, settings, spending=spending, on_progress=on_setup) as services,
    ):
        spending.note_in(Payments(Path(out)))
        context = services.context("judge", 0)
        coverage = record_questions(
            dataset,
            SearchRecording(
                Path(out) / FILE_NAME,
                of=_fingerprint(context, whole.digest, depth, width),
                dataset=experiment.dataset,
            ),
            context,
            depth=depth,
            width=width,
            max_llm_calls=experiment.max_llm_calls,
            fail_after=experiment.fail_after,
            concurrency=experiment.concurrency,
            on_progress=on_progress,
        )
    return replace(coverage, questions_read=whole.read.to_document() if whole.read else None)


def _fingerprint(context: RagContext, digest: str, depth: int, width: int) -> dict[str, str]:
    assert context.retriever is not None and context.judge is not None
    writer = context.writer or ModelWriter(context.reader, prompts=context.prompts)
    parts = {"retriever": context.retriever, "judge": context.judge, "writer": writer}
    of = {f"{name}.{key}": value for name, part in parts.items() for key, value in part.fingerprint().items()}
    return {**of, "data": digest, "depth": str(depth), "tries": str(width)}


def replay_recording(  # noqa: PLR0913 - a front door, where everything has a default that fits
    run: Path | str,
    *,
    policies: Sequence[object] = POLICIES,
    budgets: Sequence[int] = BUDGETS,
    judge: str = "",
    stop: str = "set",
    evidence: EvidenceKind = "useful",
    evidence_tokens: int | None = None,
    evidence_ranker: EvidenceRanker | None = None,
    depth: int | None = None,
    width: int | None = None,
    baseline: str = "",
    keep_trees: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Play policies and budgets on the questions of a recording that have gold documents, without a model call.

    ::

        judge = "noisy:auc=.8,sees_wrong_questions=yes"
        played = evaluation.replay_recording("runs/recorded", policies=("breadth", "wider"), judge=judge)
        print(played.summary)

    Args:
        run: The folder of the recording.
        policies: Policies as specs, objects or classes; ``oracle_order`` sees gold.
        budgets: Model calls of a question's whole tree.
        judge: ``noisy:…`` judges anew from gold and noise; empty keeps the recorded verdicts. Where a model wrote the
            questions, it takes ``sees_wrong_questions=yes`` only: what a wrong one asks about is not known there.
        stop: Spec of the stop.
        evidence: Chunks that the readers see: "useful", "sufficient" or "all"; gold in these counts as found.
        evidence_tokens: Most tokens of these. Answers to sub-questions, which a replay does not know, do not count.
        evidence_ranker: Fills these with passages that repeat each other little; None goes by verdicts.
        depth: Levels of sub-questions; those below the recording's depth count as misses. None: as many as recorded.
        width: Most sub-questions that a round grants; None for no limit.
        baseline: Name of the policy that the others are compared with; the first one if empty.
        keep_trees: Keep what the readers of the trees are shown, for ``answer_replay``.
        on_progress: Called with (questions done, questions in all).

    Raises:
        LoadingError: The folder holds no recording, a damaged one, or one without a finished question.
        SettingsError: A policy, the judge or the stop is unknown, a budget is not allowed, or the recording has no gold
            documents.
    """
    recording = SearchRecording(Path(run) / FILE_NAME)
    worlds_recorded = recording.worlds()
    if not worlds_recorded:
        raise LoadingError(
            f"None of the {len(recording.questions)} questions of {run} is recorded to its end. Run the same "
            "`judgetree eval record` again, which continues it."
        )
    recorded = {key: each for key, each in worlds_recorded.items() if each.gold}
    if not recorded:
        raise SettingsError(f"The questions of {run} have no gold documents, so that replays have nothing to count.")
    names, budgets = list(named_policies(policies)), checked_budgets(budgets)
    baseline = baseline or names[0]
    if baseline not in names:
        raise SettingsError(f"baseline={baseline!r} is not played. Allowed: {', '.join(names)}.")
    worlds: Mapping[str, ReplayEnvironment] = recorded
    if judge:
        noise = parse_spec("judge", judge, {"noisy": Noise})
        _check_questions_are_known(recording, noise, judge)
        worlds = {key: NoisyWorld(each, noise) for key, each in recorded.items()}
    depth = recording.depth if depth is None else depth
    choice = EvidenceChoice(evidence=evidence, evidence_tokens=evidence_tokens, evidence_ranker=evidence_ranker)
    trees = {key: ShownTrees(world, choice) for key, world in worlds.items()} if keep_trees else {}

    def keep(question: str, policy: str, budget: int, played: Episode) -> None:
        trees[question].add(policy, budget, played)

    rows = replay(
        worlds,
        policies=policies,
        budgets=budgets,
        stop=stop,
        limits=Limits(max_rec_depth=depth, width=width),
        evidence=choice,
        on_progress=on_progress,
        on_played=keep if keep_trees else None,
    )
    return Replay(
        rows=rows,
        summary=summarize(rows, baseline=baseline),
        baseline=baseline,
        of={
            "recording": Path(run).resolve().name,
            "recorded": f"depth {recording.depth}, tries {recording.tries}",
            "data_set": _data_set(recording),
            "recorded_with": "; ".join(f"{name}: {value}" for name, value in _recorded_with(recording.of).items()),
            "sees_gold": "the judge" if judge or recording.of.get("judge.kind") in SEE_GOLD else "",
            "judgetree": __version__,
            "questions": len(worlds),
            "without_gold": len(worlds_recorded) - len(recorded),
            "unfinished": len(recording.questions) - len(recording.finished),
            "unknown_verdicts": 0 if judge else recording.unknown,
            "unwritten": recording.unwritten,
            "judge": judge or "as recorded",
            "stop": stop,
            "depth": depth,
            "width": width,
        },
        recording=recording,
        trees=trees,
    )


def _check_questions_are_known(recording: SearchRecording, noise: Noise, judge: str) -> None:
    """Check that a judge that takes wrong sub-questions for right ones knows what they ask about."""
    is_simulated = recording.of.get("judge.kind") in SEE_GOLD
    if not (is_simulated or noise.sees_wrong_questions or recording.depth == 0):
        said = judge + ("," if ":" in judge else ":") + "sees_wrong_questions=yes"
        raise SettingsError(
            "The sub-questions of this recording were written by a model: what a wrong one asks about is not known, so "
            f"that chunks it finds can only be judged by what the question needs. Say so: --judge {said}."
        )


def _data_set(recording: SearchRecording) -> str:
    digest = recording.of.get("data", "")[:12]
    return f"{recording.dataset} (digest {digest})" if recording.dataset and digest else recording.dataset or digest


_NAMED = frozenset({"kind", "model", "embedders", "search_type", "topk", "auc", "recall", "batched", "writer", "retry"})
"""Of the fingerprint of search, judge and writer, what people know them by."""


def _recorded_with(of: Mapping[str, str]) -> dict[str, str]:
    """Return what people call search, judge and models, of the fingerprint of a recording."""
    return {name.replace(".", " "): of[name] for name in of if name.rpartition(".")[2] in _NAMED}


def replay_cost(played: Replay, readers: ReplayReaders, *, settings: Settings | None = None) -> ReadingCost:
    """Return what ``answer_replay`` costs at most; makes no call.

    ::

        played = evaluation.replay_recording("runs/recorded", keep_trees=True)
        print(evaluation.replay_cost(played, evaluation.ReplayReaders(llm="openai:gpt-4o-mini")))
    """
    return _reading(played, readers, settings).cost()


def answer_replay(
    played: Replay,
    readers: ReplayReaders,
    *,
    settings: Settings | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_setup: Callable[[int, int, str], None] | None = None,
) -> Replay:
    """Let a model answer from what each tree of a replay shows its readers; equal prompts are paid for once.

    ::

        played = evaluation.replay_recording("runs/recorded", keep_trees=True)
        readers = evaluation.ReplayReaders(llm="openai:gpt-4o-mini", max_cost=1.0)
        print(evaluation.replay_cost(played, readers).cost)
        print(evaluation.answer_replay(played, readers).summary)

    Args:
        played: A replay with its trees.
        readers: The model and its limits. The same call with higher limits pays for the rest.
        settings: None reads environment and ``.env``.
        on_progress: Called with (questions answered, questions in all).
        on_setup: Called with (done, total, stage) while a local model is loaded.

    Returns:
        The replay with ``answer``, ``em`` and ``f1`` in its rows, their means in its summary, and ``reading``.

    Raises:
        SettingsError: The replay has no trees.
        UserError: A wrong model, key or price, or a call that is not in the cache where ``cache`` is "replay".
    """
    answers, reading = _reading(played, readers, settings).answer(on_progress=on_progress, on_setup=on_setup)
    rows = played.rows.merge(answers, on=["question", "policy", "budget"], how="left")
    return replace(played, rows=rows, summary=summarize(rows, baseline=played.baseline), reading=reading)


def _reading(played: Replay, readers: ReplayReaders, settings: Settings | None) -> ReplayedReading:
    if not played.trees:
        raise SettingsError("This replay kept no trees to answer from. Give replay_recording(keep_trees=True).")
    return ReplayedReading(
        recording=played.recording, trees=played.trees, options=readers, settings=settings or load_settings()
    )
