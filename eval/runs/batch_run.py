"""A batch run from its experiment to its finished rows, alone in its directory.

Further commands may add questions, systems and repeats to a run. Its manifest describes their union, so that the run
can be repeated and reported as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ...graphs.config.variants import system_name
from ...graphs.search.depth import check_depth
from ...graphs.systems.registry import SYSTEMS
from ...graphs.threads.checkpoints import open_call_journal
from ...modules.background_loop import background_loop
from ...modules.calls.prices import load_prices
from ...modules.errors import SettingsError
from ...modules.index.schema import check_not_reserved
from ...modules.llm.cache import without_reading
from ...modules.llm.wire.adaptations import joined_adaptations
from ...modules.prompts.reading import load_prompts
from ...modules.settings import Settings, load_settings
from ..datasets.questions import Dataset
from ..rows.code_version import with_code
from ..rows.opponents import MATCHING
from ..rows.store import RunRow, RunStore, newest_attempts, part_of
from .asking import checkpoints_of, prepare_checkpoints
from .experiment import Experiment, name_unused_keys
from .jobs import Job, Retry, choose_questions, dataset_of, draw, plan_jobs, with_paths
from .limits import Spending, check_priced
from .manifest import (
    check_run,
    experiment_in,
    has_own_parts,
    identity_of,
    index_facts,
    manifest_of,
    with_opened,
    with_prompts,
    without_opened,
)
from .rerun import Rerun, check_data
from .runner import Progress, RunSummary, paid_in, run_questions
from .services import Services
from .start_folder import with_start_folder
from .worker import order_of
from .workers import Workers, crew_of, open_cluster

Number = TypeVar("Number", int, float)


def merged(known: Experiment, further: Experiment, dataset: Dataset) -> Experiment:
    """Merge two experiments into one that asks every question, system and repeat of both.

    Limits on spending are the larger ones, metrics those of both; seed and concurrency are those of ``further``. The
    parts of an experiment that the rows of a run must share are equal in both.

    Args:
        known: The experiment of the manifest.
        further: The experiment of this command, over the same data.
        dataset: The whole data set.

    Raises:
        SettingsError: An experiment names a question that the data set lacks.
    """
    asked = {*known.systems, *further.systems}
    names = [*SYSTEMS, *sorted(map(system_name, asked))]
    changes: dict[str, object] = {
        "systems": tuple(sorted(asked, key=lambda label: (names.index(system_name(label)), label))),
        "repeats": max(known.repeats, further.repeats),
        "metrics": tuple(dict.fromkeys([*(known.metrics or ()), *(further.metrics or ())])) or None,
        "max_calls": _larger(known.max_calls, further.max_calls),
        "max_tokens": _larger(known.max_tokens, further.max_tokens),
        "max_cost": _larger(known.max_cost, further.max_cost),
        "cache": known.cache,
        **_common_choice(known, further, dataset),
    }
    return further.model_copy(update=changes)


def _common_choice(known: Experiment, further: Experiment, dataset: Dataset) -> dict[str, object]:
    """Return the shortest limit, sample, seed and ids that choose the questions of both."""
    before, now = ({question.id for question in choose_questions(dataset, each).questions} for each in (known, further))
    for each, chosen, other in ((further, now, before), (known, before, now)):
        if other <= chosen:
            return {"limit": each.limit, "sample": each.sample, "seed": each.seed, "ids": each.ids}
    ids = tuple(question.id for question in dataset.questions if question.id in before | now)
    return {"limit": None, "sample": None, "ids": ids}


def _larger(known: Number | None, further: Number | None) -> Number | None:
    """Return the larger limit; None is no limit."""
    return None if known is None or further is None else max(known, further)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How to continue a run.

    >>> RunOptions(retry="failed").force
    False
    """

    retry: Retry | None = None
    """Which finished questions to ask again: the failed ones, or all incomplete ones (failed or degraded)."""
    force: bool = False
    """Ask everything again as new attempts, without reading the cache; new replies are cached."""
    accept_changes: bool = False
    """Continue although prompts, code or libraries differ from those of the rows in a way that may change results."""
    pilot: int | None = None
    """Number of questions to ask for now, drawn by the experiment's seed; None asks all."""
    again: Rerun | None = None
    """The run to repeat: its settings apply, and other data are rejected."""
    workers: Workers | None = None
    """The processes that ask the questions; None for this one."""
    opponents: Sequence[Mapping[str, object]] = ()
    """What ``match_budget`` has found, for the manifest (``Opponent.to_document``)."""
    paid_in: Path | None = None
    """The directory of another run whose payments count against the limits too."""
    sweep: Sequence[Experiment] | None = None
    """Experiments of which the keys are named that have no effect on any; None for the experiment itself."""


def run_experiment(
    experiment: Experiment,
    out: Path,
    *,
    options: RunOptions = RunOptions(),
    settings: Settings | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_setup: Callable[[int, int, str], None] | None = None,
) -> RunSummary:
    """Ask every question of the experiment that ``out`` has no row for yet; the rows are in ``RunStore(out)``.

    A second process in the same directory is refused; ``options.workers`` gives a run more processes.

    Turns of dialogues are answered in conversations: with ``history: own`` one for each dialogue, led by the system;
    with ``history: given`` one for each turn, after the data set's history.

    ::

        summary = run_experiment(load_experiment(Path("experiment.yaml")), Path("runs/a"))
        print(summary.asked, summary.failed)

    Args:
        experiment: The questions and systems to ask.
        out: The run directory, created if missing.
        options: Which finished questions to ask again.
        settings: None takes those of ``options.again``, else of environment and ``.env``; models and embeddings of
            the experiment win.
        on_progress: Called on judgetree's background thread after each question.
        on_setup: Called with (done, total, stage) while the corpus is indexed or a local model is loaded.

    Raises:
        UserError: A wrong data set or setting, or a directory that holds another run or is in use.
    """
    settings = settings or (options.again.settings if options.again else load_settings())
    _check(experiment)
    settings, experiment = with_experiment(settings, experiment), with_prompts_in_force(experiment, settings)
    whole = dataset_of(experiment)
    running = (experiment,) if options.sweep is None else options.sweep
    name_unused_keys(running, has_dialogues=whole.is_conversational)
    identity = identity_of(experiment, whole, settings)
    if options.again is not None:
        check_data(options.again.manifest, identity)
    dataset = _pilot_of(choose_questions(whole, experiment), experiment, options)
    asked = _without_cached_replies(experiment) if options.force else experiment
    prices = load_prices(settings.home)
    check_priced(experiment, settings, prices)
    store = RunStore(out)
    with store.held():
        store.mend()
        _start_over_if_unused(store, settings, identity)
        run_id = _record_experiment(store, experiment, whole, settings, options, identity)
        attempts = store.read_attempts()
        rows = newest_attempts(attempts)
        jobs = plan_jobs(experiment, dataset.questions, rows, retry=options.retry, force=options.force)
        kept = len(dataset.questions) * len(experiment.systems) * experiment.repeats - len(jobs)
        damaged = _kept_incomplete(experiment, dataset, rows, jobs)
        spending = Spending(experiment, attempts, prices=prices)
        # A run goes on without match_budget too, and its pilot stays paid.
        spending.count(paid_in(options.paid_in or store.folder / MATCHING, settings, prices))
        nothing_asked = RunSummary(
            asked=0,
            kept=kept,
            failed=0,
            kept_incomplete=damaged,
            cost=spending.cost,
            questions_read=whole.read.to_document() if whole.read else None,
        )
        if not jobs and not has_own_parts(identity):
            return nothing_asked
        with ExitStack() as resources:
            ray = None
            if jobs and options.workers is not None:
                ray = resources.enter_context(open_cluster(options.workers, settings, asked))
            services = Services(asked, dataset, settings, spending=spending, on_progress=on_setup)
            if jobs:
                _record_code(store, options)
            resources.enter_context(services)
            _record_services(store, services, options.again)
            _record_gold(store, services)
            if not jobs:
                return nothing_asked
            prepare_checkpoints(settings)
            open_asking = None
            if ray is not None and options.workers is not None:
                order = order_of(services, store, run_id, jobs)
                crew = crew_of(ray, options.workers, order, spending, attempts, on_setup)
                open_asking = resources.enter_context(crew)
            try:
                summary = run_questions(
                    services,
                    store,
                    run_id,
                    jobs,
                    spending=spending,
                    rows=rows,
                    open_asking=open_asking,
                    on_progress=on_progress,
                )
            finally:
                _record_adaptations(store, services)
        return replace(summary, kept=kept, kept_incomplete=damaged, questions_read=nothing_asked.questions_read)


def _check(experiment: Experiment) -> None:
    check_depth(experiment.max_rec_depth)
    if experiment.match_budget is not None:
        raise SettingsError(
            "match_budget is what run_matched measures, as evaluation.run and `eval run` do: call that."
        )


def with_experiment(settings: Settings, experiment: Experiment) -> Settings:
    """Apply the models, embeddings, options and recording of an experiment to settings.

    Raises:
        CollectionError: The experiment names the collection of the conversations' memory.
    """
    if experiment.collection is not None:
        check_not_reserved(experiment.collection, settings)
    return experiment.applied_to(settings).with_models(embeddings=experiment.embeddings, record=experiment.record)


def with_prompts_in_force(experiment: Experiment, settings: Settings) -> Experiment:
    """Return the experiment with the prompts of the settings where it names none.

    Raises:
        SettingsError: The file of the settings cannot be read, or is not usable.
    """
    if experiment.prompts is not None:
        return experiment
    return experiment.model_copy(update={"prompts": load_prompts(settings.prompts)})


def _without_cached_replies(experiment: Experiment) -> Experiment:
    if experiment.cache == "replay":
        raise SettingsError(
            "--force asks the models again, but a replay never does. Leave out --force, or --cache replay."
        )
    return experiment.model_copy(update={"cache": without_reading(experiment.cache)})


def _pilot_of(dataset: Dataset, experiment: Experiment, options: RunOptions) -> Dataset:
    if options.pilot is None:
        return dataset
    drawn = [question.id for question in draw(dataset.questions, options.pilot, seed=experiment.seed)]
    return with_paths(dataset, drawn, experiment) if drawn else replace(dataset, questions=())


def _kept_incomplete(experiment: Experiment, dataset: Dataset, rows: Iterable[RunRow], jobs: Iterable[Job]) -> int:
    """Count the failed or degraded rows of the experiment's questions that are not asked again."""
    asked, questions = {job.place for job in jobs}, {question.id for question in dataset.questions}
    return sum(
        row.completeness != "complete" and row.place not in asked
        for row in rows
        if row.question_id in questions and row.system in experiment.systems and row.repeat < experiment.repeats
    )


def _start_over_if_unused(store: RunStore, settings: Settings, wanted: Mapping[str, object]) -> None:
    """Delete a run of other settings that never had an answer, such as a first try with a wrong key.

    One whose open questions have made calls is kept: they can be resumed.
    """
    manifest = store.read_manifest()
    if manifest is None or any(not row.setup_failed or row.paid for row in store.read_attempts()):
        return
    if background_loop().run(_has_booked_calls(checkpoints_of(store, settings))):
        return
    try:
        check_run(manifest, wanted, where=store.folder)
    except SettingsError:
        store.start_over()
    else:
        store.write_manifest(without_opened(manifest))


async def _has_booked_calls(checkpoints: str) -> bool:
    async with open_call_journal(checkpoints) as journal:
        return journal is not None and bool(await journal.booked_calls())


def _record_experiment(
    store: RunStore,
    experiment: Experiment,
    dataset: Dataset,
    settings: Settings,
    options: RunOptions,
    wanted: Mapping[str, object],
) -> str:
    manifest = store.read_manifest()
    if manifest is None:
        manifest = with_start_folder(manifest_of(experiment, dataset, settings), store.folder)
        store.write_manifest(manifest)
    else:
        check_run(manifest, wanted, where=store.folder, accept_changes=options.accept_changes)
        known, manifest = manifest, with_prompts(manifest, wanted)
        asked = merged(experiment_in(manifest), experiment, dataset)
        manifest = {**manifest, "experiment": asked.model_dump(mode="json")}
        if manifest != known:
            store.write_manifest(manifest)
    if options.opponents and manifest.get("opponents") != list(options.opponents):
        store.write_manifest({**manifest, "opponents": list(options.opponents)})
    return str(manifest["run_id"])


def _record_code(store: RunStore, options: RunOptions) -> None:
    known = store.read_manifest() or {}
    manifest = with_code(known, accept_changes=options.accept_changes, where=store.folder)
    if manifest != known:
        store.write_manifest(manifest)


def _record_adaptations(store: RunStore, services: Services) -> None:
    """Add to the manifest what the models have refused by name, and what they were sent in its place."""
    if found := services.adaptations():
        manifest = store.read_manifest() or {}
        known = manifest.get("adapted")
        adapted = joined_adaptations(known if isinstance(known, dict) else {}, found)
        store.write_manifest({**manifest, "adapted": adapted})


def _opened_parts(services: Services) -> Iterator[tuple[str, Mapping[str, object]]]:
    if services.index is not None:
        yield "index", index_facts(services.index)
    yield from services.fingerprints()


def _record_gold(store: RunStore, services: Services) -> None:
    """Note which gold documents the searched collection lacks, of the most questions that a start of the run had."""
    manifest, found = store.read_manifest() or {}, services.gold_found
    known, counted = part_of(manifest, "gold").get("documents"), found.get("documents")
    if isinstance(counted, int) and (not isinstance(known, int) or counted >= known):
        store.write_manifest({**manifest, "gold": found})


def _record_services(store: RunStore, services: Services, again: Rerun | None) -> None:
    manifest = known = store.read_manifest() or {}
    for part, facts in _opened_parts(services):  # the index first: a graph of another content cannot be opened
        if again is not None:
            check_data(again.manifest, {}, {part: facts})
        known = with_opened(known, part, facts, where=store.folder)
    if known != manifest:
        store.write_manifest(known)
