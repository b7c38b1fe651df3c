"""Questions asked in this process, each as a finished row with its tree."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ...graphs.config.variants import system_name
from ...graphs.rag.result import RagResult
from ...graphs.session import RagSession
from ...graphs.stores.registry import is_postgres
from ...graphs.threads.checkpoints import open_call_journal, open_checkpointer
from ...graphs.threads.recording import Recording
from ...modules.addresses import Address
from ...modules.background.garbage import rare_collections
from ...modules.background_loop import background_loop
from ...modules.calls.journal import ACCOUNT, CallJournal
from ...modules.calls.record import Spend
from ...modules.errors import JudgetreeError, ModelSetupError, RunLimitReached, UserError, WritingError
from ...modules.parts import guard_exit
from ...modules.settings import Settings
from ...modules.storage.write_errors import is_full_disk, writing_error
from ..rows.code_version import code_version
from ..rows.from_results import paid_for, row_of
from ..rows.store import Place, RunRow, RunStore
from ..rows.turn_facts import TurnReply
from .jobs import Job, thread_id_of
from .services import Services
from .turn_asker import TurnAsker

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """A question that was asked."""

    row: RunRow
    tree: str = ""
    """Its search tree, as ``SearchTree.to_json`` writes it; empty if it has none."""
    is_new: bool = True
    """False if the turn was there already, so that no endpoint was asked."""
    adapted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What models have refused so far in the process that asked it, as ``told_adaptations`` words it."""


class Asking(Protocol):
    """Protocol of what answers the jobs of a run: this process, or workers."""

    async def ask(self, job: Job) -> JobResult | None:
        """Answer one job; None if a limit of the run does not allow it, so that it stays open.

        Raises:
            UserError: What every other question would meet too.
        """
        ...

    async def owe(self, open_payments: Mapping[str, Spend]) -> None:
        """Count what earlier starts of the run have paid for questions without a row, by thread."""
        ...


def checkpoints_of(store: RunStore, settings: Settings) -> Address:
    """Return the address of a run's checkpoints and call journal: a file of the run directory, or PostgreSQL."""
    url = settings.checkpoint_url
    return url if is_postgres(url) else Address(f"sqlite:///{_made(store.folder / 'checkpoints.sqlite')}")


def _made(file: Path) -> Path:
    """Make the databases of a run by the umask, like its other files: what exists keeps its mode."""
    if file.parent.is_dir():
        for each in (file, file.with_name(f"{file.stem}-calls.sqlite")):
            each.touch()
    return file


def prepare_checkpoints(settings: Settings) -> None:
    """Make the tables of a PostgreSQL checkpoint store, which only one process may do at a time.

    Raises:
        SettingsError: The store cannot be opened.
        DependencyError: The extra ``postgres`` is not installed.
    """

    async def opened() -> None:
        async with open_checkpointer(settings.checkpoint_url):
            pass

    if is_postgres(settings.checkpoint_url):
        background_loop().run(opened())


class _Asker(Protocol):
    """Answers the jobs of one system and repeat."""

    async def ask(self, job: Job, *, thread_id: str) -> RagResult | TurnReply: ...

    async def aclose(self) -> None: ...


class _QuestionAsker:
    """Answers questions that stand alone."""

    def __init__(self, session: RagSession) -> None:
        self._session = session

    async def ask(self, job: Job, *, thread_id: str) -> RagResult:
        return await self._session.aask(job.question.question, thread_id=thread_id, repeat=job.repeat)

    async def aclose(self) -> None:
        await self._session.aclose()


@asynccontextmanager
async def asking_here(
    services: Services, store: RunStore, run_id: str, jobs: Iterable[Job], newest: Mapping[Place, RunRow]
) -> AsyncIterator[Asking]:
    """Open what answers the jobs in this process; use it on judgetree's background loop.

    ``newest`` holds the rows of the turns that others follow, also those that are added to it later.
    """
    async with AsyncExitStack() as closing:
        closing.enter_context(rare_collections())
        asking = _AskingHere(services, store, run_id, newest)
        for place in dict.fromkeys((job.system, job.repeat, job.fresh) for job in jobs):
            closing.push_async_callback(asking.open_asker(*place).aclose)
        journal = open_call_journal(checkpoints_of(store, services.settings))
        asking.journal = await closing.enter_async_context(journal)
        yield asking


class _AskingHere:
    def __init__(self, services: Services, store: RunStore, run_id: str, newest: Mapping[Place, RunRow]) -> None:
        self._services = services
        self._store = store
        self._run_id = run_id
        self._newest = newest
        self._askers: dict[tuple[str, int, bool], _Asker] = {}
        self.journal: CallJournal | None = None

    async def owe(self, open_payments: Mapping[str, Spend]) -> None:
        """Do nothing: the run's own ledger is the one that its questions ask."""

    def open_asker(self, system: str, repeat: int, fresh: bool) -> _Asker:
        services = self._services
        changes = {"checkpoints": checkpoints_of(self._store, services.settings), "durability": "exit"}
        settings = services.settings.model_copy(update=changes)
        recording = Recording.of(settings, file=self._store.transcripts_file)
        asker: _Asker
        if services.dataset.is_conversational:
            asker = TurnAsker(
                services,
                system,
                repeat,
                fresh=fresh,
                settings=settings,
                recording=recording,
                run_id=self._run_id,
                newest=self._newest,
            )
        else:
            context = services.context(system, repeat, fresh=fresh)
            session = RagSession(system=system_name(system), context=context, settings=settings, recording=recording)
            asker = _QuestionAsker(session)
        self._askers[system, repeat, fresh] = asker
        return asker

    async def ask(self, job: Job) -> JobResult | None:
        """Answer one job, see ``Asking``."""
        started = time.perf_counter()
        thread_id = thread_id_of(self._run_id, job)
        ACCOUNT.set(thread_id)
        try:
            result, failure = await self._answer(job, thread_id)
        except RunLimitReached:  # the thread stays open, so that a run with a higher limit resumes it
            return None
        row = row_of(
            job.question,
            result,
            place=(job.system, job.repeat, job.attempt),
            thread_id=thread_id,
            error=_reason(result, failure),
            # A turn is measured after its answer, which must not count.
            seconds=result.wall_s if isinstance(result, TurnReply) else time.perf_counter() - started,
            key_field=self._services.dataset.key_field,
            local_models=self._services.local_models,
        )
        row = await self._with_journaled(row, result)
        row = replace(row, setup_failed=isinstance(failure, ModelSetupError), code=code_version()["id"])
        return JobResult(
            row=row,
            tree=result.tree.to_json() if result is not None and result.tree is not None else "",
            is_new=not (isinstance(result, TurnReply) and result.is_new_thread),
            adapted=self._services.adaptations(),
        )

    async def _with_journaled(self, row: RunRow, result: RagResult | TurnReply | None) -> RunRow:
        """Return the row with what its question has paid for beyond its tree, such as failed attempts at an answer.

        The journal has all calls that were made for the question, over all starts of the run.
        """
        if self.journal is None:
            return row
        journaled = {
            record["call_id"]: record
            for call in await self.journal.booked_calls(row.thread_id)
            for record in call.records
        }
        tree = result.tree if result is not None else None
        known = {record["call_id"]: record for node in (tree.query_nodes() if tree else ()) for record in node.usage}
        left = [record for call_id, record in journaled.items() if call_id not in known]
        own = result.facts.own if isinstance(result, TurnReply) else None
        if not left or (own is not None and len(left) <= own.calls):  # calls of a conversation besides its search
            return row
        paid = paid_for([*known.values(), *left], self._services.local_models)
        cached = (
            ()
            if own is None or not own.cached_calls
            else (replace(own, calls=0, prompt_tokens=0, completion_tokens=0),)
        )
        return replace(row, paid=(*paid, *cached))

    async def _answer(self, job: Job, thread_id: str) -> tuple[RagResult | TurnReply | None, Exception | None]:
        """Return the answer to a question, or the error that failed it; raises what every other question would meet."""
        try:
            with guard_exit(job.system):
                return await self._askers[job.system, job.repeat, job.fresh].ask(job, thread_id=thread_id), None
        except ModelSetupError as failure:
            return None, failure
        except WritingError:
            raise
        except Exception as failure:
            if is_full_disk(failure):  # whether the checkpoints met it as they were opened, read or written
                raise writing_error("The state of a question", failure) from failure
            if isinstance(failure, UserError):
                raise
            # An error of one question must not end a long run.
            logger.exception("question %s to %s failed", job.question.id, job.system)
            return None, failure


def _reason(result: RagResult | TurnReply | None, failure: Exception | None) -> str:
    """Return why a question failed; ``""`` if it did not."""
    if failure is None:
        return result.error if result is not None else ""
    return str(failure) if isinstance(failure, JudgetreeError) else f"{type(failure).__name__}: {failure}"
