"""``judgetree ask``: answers one question while its search tree grows on standard error."""

from __future__ import annotations

import json
import shlex
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from ...modules.errors import ModelSetupError, SettingsError
from ..terminal.caveats import say_caveats
from ..terminal.exit_status import FAILED
from ..terminal.terminal import busy, say, write_json
from .options import (
    Collection,
    Evidence,
    EvidenceName,
    EvidenceRanker,
    EvidenceRankerName,
    EvidenceTokens,
    Expand,
    Json,
    JudgeKind,
    JudgeLlm,
    Llm,
    MaxDepth,
    MaxSubRuns,
    MaxTreeCost,
    MaxTreeSeconds,
    MaxTreeTokens,
    Policy,
    Prompts,
    Record,
    Retriever,
    SearchGraph,
    SearchType,
    Sharing,
    Stop,
    Strategy,
    StrategyName,
    System,
    Thinking,
    Tools,
    TopK,
    Width,
)

if TYPE_CHECKING:
    from ...graphs.rag.result import RagResult
    from ...graphs.session import RagSession
    from ...graphs.threads.context import RunEvent
    from ...modules.settings import Settings
    from ..terminal.saved import Fingerprint


@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """Options of a question; None takes the option of the resumed thread, else the default."""

    collection: str | None = None
    system: str | None = None
    retriever: str | None = None
    topk: int | None = None
    max_depth: int | None = None
    max_llm_calls: int | None = None
    search_type: str | None = None
    search_graph: str | None = None
    judge: str | None = None
    policy: str | None = None
    stop: str | None = None
    evidence: EvidenceName | None = None
    evidence_tokens: int | None = None
    evidence_ranker: EvidenceRankerName | None = None
    width: int | None = None
    max_sub_runs: int | None = None
    sharing: str | None = None
    expand: str | None = None
    max_tree_tokens: int | None = None
    max_tree_cost_usd: float | None = None
    max_tree_seconds: float | None = None
    strategy: StrategyName | None = None
    tools: tuple[str, ...] | None = None
    llm: str | None = None
    thinking: bool | None = None
    judge_llm: str | None = None
    prompts: Path | None = None

    def filled(self, saved: AskOptions) -> AskOptions:
        """Return these options, with ``saved`` in place of None."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return replace(saved, **given)

    @classmethod
    def of_thread(cls, fingerprint: Fingerprint) -> AskOptions:
        """Return the options that a fingerprint records; None for the others."""
        from ...graphs.search.policies.registry import spec_of
        from ...graphs.threads.fingerprint import tools_of
        from ..terminal.saved import system_of

        def number(key: str) -> int | None:
            return int(fingerprint[key]) if fingerprint.get(key, "None") != "None" else None

        def amount(key: str) -> float | None:
            return float(fingerprint[key]) if key in fingerprint else None

        return cls(
            collection=fingerprint.get("retriever.collection"),
            system=system_of(fingerprint),
            retriever=fingerprint.get("retriever.part"),
            topk=number("retriever.topk"),
            max_depth=number("max_rec_depth"),
            max_llm_calls=number("max_llm_calls"),
            search_type=json.loads(fingerprint.get("retriever.search_type", "null")),
            search_graph=json.loads(fingerprint.get("retriever.graph", "{}")).get("kind"),
            judge=fingerprint.get("judge.part", fingerprint.get("judge.kind")),
            policy=spec_of(fingerprint, "policy"),
            stop=spec_of(fingerprint, "stop"),
            evidence=next(
                (name for name in get_args(EvidenceName) if name == fingerprint.get("reader.evidence")), None
            ),
            evidence_tokens=number("reader.evidence_tokens"),
            evidence_ranker=next(
                (name for name in get_args(EvidenceRankerName) if name == fingerprint.get("reader.evidence_ranker")),
                None,
            ),
            width=number("width"),
            max_sub_runs=number("max_sub_runs"),
            sharing=fingerprint.get("sharing"),
            expand=fingerprint.get("expansion"),
            max_tree_tokens=number("max_tree_tokens"),
            max_tree_cost_usd=amount("max_tree_cost_usd"),
            max_tree_seconds=amount("max_tree_seconds"),
            strategy=next(
                (name for name in get_args(StrategyName) if name == fingerprint.get("reader.strategy")), None
            ),
            tools=tools_of(fingerprint) or None,
        )


def ask(  # noqa: PLR0913 - one parameter an option
    question: Annotated[str | None, typer.Argument(help="May be left out with --resume.")] = None,
    *,
    collection: Collection = None,
    system: System = None,
    retriever: Retriever = None,
    llm: Llm = None,
    thinking: Thinking = None,
    judge_llm: JudgeLlm = None,
    topk: TopK = None,
    max_depth: MaxDepth = None,
    max_llm_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="Most model calls; default 60.")] = None,
    search_type: SearchType = None,
    search_graph: SearchGraph = None,
    judge: JudgeKind = None,
    policy: Policy = None,
    stop: Stop = None,
    evidence: Evidence = None,
    evidence_tokens: EvidenceTokens = None,
    evidence_ranker: EvidenceRanker = None,
    width: Width = None,
    max_sub_runs: MaxSubRuns = None,
    sharing: Sharing = None,
    expand: Expand = None,
    max_tree_tokens: MaxTreeTokens = None,
    max_tree_cost_usd: MaxTreeCost = None,
    max_tree_seconds: MaxTreeSeconds = None,
    strategy: Strategy = None,
    tool: Tools = None,
    prompts: Prompts = None,
    thread_id: Annotated[str | None, typer.Option(metavar="ID", help="Name of the run; default: a new one.")] = None,
    record: Record = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the thread, with its question and options.")] = False,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the tree as SVG.")] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the tree as an HTML page.")] = None,
    as_json: Json = False,
) -> None:
    """Ask a question; the answer goes to standard output, the growing tree to standard error."""
    with busy("starting"):
        from ...modules.settings import load_settings
        from ..terminal.files import TreeFiles

    settings = load_settings().with_models(
        llm=llm, judge_llm=judge_llm, thinking=thinking, prompts=prompts, record=record
    )
    if question is None and not resume:
        raise SettingsError("Give a question, or --resume --thread-id ID to resume an earlier one.")
    if resume and thread_id is None:
        raise SettingsError("--resume needs --thread-id ID. `judgetree threads` lists the threads there are.")
    files = TreeFiles.named(svg=svg, html=html)
    files.check(stdout_is_free=False)
    options = AskOptions(
        collection=collection,
        system=system,
        retriever=retriever,
        topk=topk,
        max_depth=max_depth,
        max_llm_calls=max_llm_calls,
        search_type=search_type,
        search_graph=search_graph,
        judge=judge,
        policy=policy,
        stop=stop,
        evidence=evidence,
        evidence_tokens=evidence_tokens,
        evidence_ranker=evidence_ranker,
        width=width,
        max_sub_runs=max_sub_runs,
        sharing=sharing,
        expand=expand,
        max_tree_tokens=max_tree_tokens,
        max_tree_cost_usd=max_tree_cost_usd,
        max_tree_seconds=max_tree_seconds,
        strategy=strategy,
        tools=tuple(tool) if tool else None,
        llm=llm,
        thinking=thinking,
        judge_llm=judge_llm,
        prompts=prompts,
    )
    result = ask_and_watch(question, options, settings, thread_id=thread_id, resume=resume, shows_answer=not as_json)
    if as_json:
        write_json(result.to_document())
    say_outcome(result, options)
    files.write(result.tree)
    if result.status in UNANSWERED or result.judging_failed:
        raise typer.Exit(FAILED)


UNANSWERED = ("failed", "interrupted")
"""Statuses of results whose thread is open."""


def ask_and_watch(
    question: str | None,
    options: AskOptions,
    settings: Settings,
    *,
    thread_id: str | None = None,
    resume: bool = False,
    shows_answer: bool = True,
) -> RagResult:
    """Ask with the tree on standard error and, if ``shows_answer``, the answer on standard output.

    ``question`` and ``options`` may be left to the thread under ``resume``. Without ``thread_id`` a new thread is made.

    Raises:
        UserError: The user must correct something.
        KeyboardInterrupt: Ctrl-C, after a message on how to resume.
    """
    with busy("starting"):
        from ..terminal.live_tree import LiveQuery, LiveTree
        from ..terminal.saved import read_fingerprint, read_saved_tree
        from ..terminal.watching import GrowingAnswer, watching

    thread_id = thread_id or str(uuid.uuid4())
    known = LiveTree(LiveQuery(thread_id=thread_id, query=question or ""))
    if resume:
        known = LiveTree.of_saved(read_saved_tree(settings, thread_id))
        options = options.filled(AskOptions.of_thread(read_fingerprint(settings, thread_id)))
    if not options.collection and options.system != "llm" and options.retriever is None:
        raise SettingsError("Name a collection with -c NAME; `judgetree collections` lists them.")
    answer = GrowingAnswer()
    with watching(known) as watcher, open_session(options, settings, watcher.on_progress) as session:

        def on_event(event: RunEvent) -> None:
            watcher.on_event(event)
            if shows_answer and event["event"] == "answer_growing":
                answer.grow(str(event["text"]), restarted=bool(event["restarted"]))

        try:
            result = session.ask(question, thread_id=thread_id, resume=resume, on_event=on_event)
        except (KeyboardInterrupt, ModelSetupError):
            watcher.stop()
            _say_how_to_resume(session, thread_id, options)
            raise
    if shows_answer and result.status not in UNANSWERED:
        answer.finish(result.answer)
    return result


def open_session(options: AskOptions, settings: Settings, on_progress: Callable[[int, int, str], None]) -> RagSession:
    """Return a session with these options, the defaults in place of None."""
    from ...graphs.session import RagSession
    from ...graphs.threads.context import Limits

    usual = Limits()
    return RagSession(
        options.collection or "",
        system=options.system or "judge",
        retriever=options.retriever,
        topk=3 if options.topk is None else options.topk,
        search_type=options.search_type or "hybrid",
        search_graph=options.search_graph,
        judge=options.judge or "auto",
        policy=options.policy or "breadth",
        stop=options.stop or "set",
        evidence=options.evidence or "useful",
        evidence_tokens=options.evidence_tokens,
        evidence_ranker=options.evidence_ranker,
        strategy=options.strategy or "stuff",
        tools=options.tools or (),
        limits=Limits(
            max_rec_depth=usual.max_rec_depth if options.max_depth is None else options.max_depth,
            max_llm_calls=usual.max_llm_calls if options.max_llm_calls is None else options.max_llm_calls,
            width=options.width,
            max_sub_runs=options.max_sub_runs,
            sharing=options.sharing or "off",
            expansion=options.expand or "sub_question",
            max_tree_tokens=options.max_tree_tokens,
            max_tree_cost_usd=options.max_tree_cost_usd,
            max_tree_seconds=options.max_tree_seconds,
        ),
        settings=settings,
        on_progress=on_progress,
    )


def say_outcome(result: RagResult, options: AskOptions = AskOptions()) -> None:
    """Print status, cost and the next commands on standard error."""
    from ...graphs.drawing.words import failed_verdict_words, spent_words, usage_words

    if result.error:
        say(result.error, style="red")
    cost = usage_words(result.usage_this_run)
    say(f"{result.status} · {cost} · {result.wall_s:.1f} s in all", style="dim")
    if failed := failed_verdict_words(result.tree.root):
        say(failed, style="red" if result.judging_failed else "yellow")
    if result.tree.budget_spent:
        say(f"{spent_words(result.tree.spent_limits)}: the answer rests on part of the evidence.", style="yellow")
    say_caveats(result.tree.caveats)
    if result.status in UNANSWERED:
        say(f"resume: {resume_command(result.thread_id, options)}")
    say(f"tree:   judgetree tree {result.thread_id} · calls: judgetree calls {result.thread_id}", style="dim")


def resume_command(thread_id: str, options: AskOptions = AskOptions()) -> str:
    """Return the command that resumes a thread with its own options; models and prompts are not among them."""
    from ...modules.settings import without_secrets

    words = ["judgetree", "ask", "--resume", "--thread-id", thread_id]
    for flag, model in (("--llm", options.llm), ("--judge-llm", options.judge_llm)):
        words += [flag, without_secrets(model)] if model else []
    if options.thinking is not None:
        words.append("--thinking" if options.thinking else "--no-thinking")
    words += ["--prompts", str(options.prompts)] if options.prompts else []
    return shlex.join(words)


def _say_how_to_resume(session: RagSession, thread_id: str, options: AskOptions) -> None:
    from ...graphs.threads.snapshots import is_absent

    if is_absent(session.graph.get_state({"configurable": {"thread_id": thread_id}})):
        say("Stopped before anything was done.")
    else:
        say(f"Stopped; what was done is kept. resume: {resume_command(thread_id, options)}")
