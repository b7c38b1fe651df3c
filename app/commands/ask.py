"""``judgetree ask``: answers one question while its search tree grows on standard error."""

from __future__ import annotations

import shlex
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ...graphs.config.rag_config import USUAL, RagConfig
from ...modules.errors import ModelSetupError, SettingsError
from ...modules.progress import StageProgress
from ..terminal.caveats import say_caveats
from ..terminal.exit_status import FAILED
from ..terminal.terminal import busy, say, write_json
from .config_options import takes
from .options import Collection, Json, Record, System

if TYPE_CHECKING:
    from ...graphs.rag.result import RagResult
    from ...graphs.session import RagSession
    from ...graphs.threads.context import RunEvent
    from ...modules.settings import Settings


@dataclass(frozen=True, kw_only=True)
class SearchChoice:
    """What a question is asked of, and how; None, and keys that are not given, leave it to the resumed thread."""

    collection: str | None = None
    system: str | None = None
    config: RagConfig = USUAL

    def of_thread(self, settings: Settings, thread_id: str) -> SearchChoice:
        """Return the choice of a saved thread, with what this one gives in its place."""
        from ...graphs.config.given_keys import GivenKeys
        from ...graphs.systems.registry import find_system
        from ..terminal.saved import read_saved_choice

        collection, system, config = read_saved_choice(settings, thread_id)
        return SearchChoice(
            collection=self.collection or collection,
            system=self.system or system,
            config=GivenKeys.fitting(config, find_system(self.system or system).has).changed(**self.config.given),
        )

    def open_session(self, settings: Settings, on_progress: StageProgress) -> RagSession:
        """Return a session of this choice."""
        from ...graphs.session import RagSession

        return RagSession(
            self.collection or "",
            self.config,
            system=self.system or "judge",
            settings=settings,
            on_progress=on_progress,
        )


@takes(RagConfig)
def ask(  # noqa: PLR0913 - one parameter an option
    question: Annotated[str | None, typer.Argument(help="The question; may be left out with --resume.")] = None,
    *,
    collection: Collection = None,
    system: System = None,
    thread_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Name of the thread that keeps question and tree; default: a new one."),
    ] = None,
    record: Record = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the thread, with its question and options.")] = False,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the tree as SVG.")] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the tree as an HTML page.")] = None,
    as_json: Json = False,
    config: RagConfig,
) -> None:
    """Ask a question; the answer goes to standard output, the growing tree to standard error.

    Examples:
        judgetree ask "Which oil does KS-1 need?" -c handbook
        judgetree ask "Which oil does KS-1 need?" -c handbook --svg tree.svg
        judgetree ask --resume --thread-id THREAD_ID
    """
    with busy():
        from ...modules.settings import load_settings
        from ..terminal.files import TreeFiles

    settings = load_settings().with_models(record=record)
    if question is None and not resume:
        raise SettingsError("Give a question, or --resume --thread-id ID to resume an earlier one.")
    if resume and thread_id is None:
        raise SettingsError("--resume needs --thread-id ID. `judgetree threads` lists the threads there are.")
    files = TreeFiles.named(svg=svg, html=html)
    files.check(stdout_is_free=False)
    choice = SearchChoice(collection=collection, system=system, config=config)
    result = ask_and_watch(question, choice, settings, thread_id=thread_id, resume=resume, shows_answer=not as_json)
    if as_json:
        write_json(result.to_document())
    say_outcome(result, config)
    files.write(result.tree)
    if result.status in UNANSWERED or result.judging_failed:
        raise typer.Exit(FAILED)


UNANSWERED = ("failed", "interrupted")
"""Statuses of results whose thread is open."""


def ask_and_watch(
    question: str | None,
    choice: SearchChoice,
    settings: Settings,
    *,
    thread_id: str | None = None,
    resume: bool = False,
    shows_answer: bool = True,
) -> RagResult:
    """Ask with the tree on standard error and, if ``shows_answer``, the answer on standard output.

    ``question`` and ``choice`` may be left to the thread under ``resume``. Without ``thread_id`` a new thread is made.

    Raises:
        UserError: The user must correct something.
        KeyboardInterrupt: Ctrl-C, after a message on how to resume.
    """
    with busy():
        from ..terminal.live_tree import LiveQuery, LiveTree
        from ..terminal.saved import read_saved_tree
        from ..terminal.watching import GrowingAnswer, watching

    thread_id = thread_id or str(uuid.uuid4())
    known = LiveTree(LiveQuery(thread_id=thread_id, query=question or ""))
    if resume:
        known = LiveTree.of_saved(read_saved_tree(settings, thread_id))
        choice = choice.of_thread(settings, thread_id)
    if not choice.collection and choice.system != "llm" and choice.config.retriever is None:
        raise SettingsError("Name a collection with -c NAME; `judgetree collections` lists them.")
    answer = GrowingAnswer()
    waits_for = f"opening {choice.collection} and searching it" if choice.collection else "waiting for the model"
    with watching(known, waits_for=waits_for) as watcher, choice.open_session(settings, watcher.on_progress) as session:

        def on_event(event: RunEvent) -> None:
            watcher.on_event(event)
            if shows_answer and event["event"] == "answer_growing":
                answer.grow(str(event["text"]), restarted=bool(event["restarted"]))

        try:
            result = session.ask(question, thread_id=thread_id, resume=resume, on_event=on_event)
        except (KeyboardInterrupt, ModelSetupError):
            watcher.stop()
            _say_how_to_resume(session, thread_id, choice.config)
            raise
    if shows_answer and result.status not in UNANSWERED:
        answer.finish(result.answer)
    return result


def say_outcome(result: RagResult, config: RagConfig = USUAL) -> None:
    """Print status, cost and the next commands on standard error."""
    from ...graphs.drawing.words import format_failed_verdict, format_spent, format_usage

    if result.error:
        say(result.error, style="red")
    cost = format_usage(result.usage_this_run)
    say(f"{result.status} · {cost} · {result.wall_s:.1f} s in all", style="dim")
    if failed := format_failed_verdict(result.tree.root):
        say(failed, style="red" if result.judging_failed else "yellow")
    if result.tree.budget_spent:
        say(f"{format_spent(result.tree.spent_limits)}: the answer rests on part of the evidence.", style="yellow")
    say_caveats(result.tree.caveats)
    if result.status in UNANSWERED:
        say(f"resume: {resume_command(result.thread_id, config)}")
    say(f"tree:   judgetree tree {result.thread_id} · calls: judgetree calls {result.thread_id}", style="dim")


def resume_command(thread_id: str, config: RagConfig = USUAL) -> str:
    """Return the command that resumes a thread with its own options; models and prompts are not among them."""
    from ...modules.settings import without_secrets

    words = ["judgetree", "ask", "--resume", "--thread-id", thread_id]
    for flag, model in (("--llm", config.llm), ("--judge-llm", config.judge_llm)):
        words += [flag, without_secrets(model)] if model else []
    if config.thinking is not None:
        words.append("--thinking" if config.thinking else "--no-thinking")
    words += ["--prompts", config.prompts.file] if config.prompts and config.prompts.file else []
    return shlex.join(words)


def _say_how_to_resume(session: RagSession, thread_id: str, config: RagConfig) -> None:
    from ...graphs.threads.snapshots import is_absent

    if is_absent(session.graph.get_state({"configurable": {"thread_id": thread_id}})):
        say("Stopped before anything was done.")
    else:
        say(f"Stopped; what was done is kept. resume: {resume_command(thread_id, config)}")
