"""Every verb of the public classes that goes to judgetree's own loop has an async twin, which does the same."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import judgetree
from judgetree.graphs import asking as front_door
from judgetree.graphs.conversation.conversation import FIRST, Conversation
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.session import RagSession
from judgetree.graphs.systems.naive_rag import build_naive_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.errors import NoRunningQuestion
from tests.graphs.conversation.talk import CLASS, OIL, SCREW, TABLE, TalkingLLM, open_conversations, settings_in
from tests.graphs.fakes import TableRetriever

WITHOUT_WORK: Final = {
    "as_state_graph",
    "chat",
    "conversation",
    "get_graph",
    "open_sender",
    "thread_key",
    "transcripts_of",
}
"""Verbs that read and write nothing."""
CLASSES = (Conversation, Conversations, RagSession, RagGraph)
THREAD: Any = {"configurable": {"thread_id": "t"}}
NEXT_YEAR = datetime.now(UTC) + timedelta(days=365)


def verbs_of(kind: type) -> list[str]:
    """The public methods that a class itself defines, async ones left out."""
    return [
        name
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_") and name not in WITHOUT_WORK and not is_async(value)
    ]


def is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


PAIRS = [(kind, verb) for kind in CLASSES for verb in verbs_of(kind)]


@pytest.mark.parametrize(("kind", "verb"), PAIRS)
def test_verb_and_twin_have_the_same_parameters_and_the_twin_names_its_verb(kind: type, verb: str) -> None:
    function, twin = getattr(kind, verb), getattr(kind, f"a{verb}")
    assert inspect.signature(function).parameters == inspect.signature(twin).parameters
    assert inspect.getdoc(twin) == f"Async twin of ``{verb}``."
    assert is_async(twin)
    assert (twin.__module__, twin.__qualname__) == (kind.__module__, f"{kind.__name__}.a{verb}")


# --- the same result ---

Call = Callable[[Callable[..., Any], Any], Any]
"""Calls a verb, which is the blocking one or its twin, of an object."""
See = Callable[[Any, Any], object]
"""What must be equal: of the result, and of the object after the call."""


def result_itself(result: object, subject: object) -> object:
    return result


def queries(result: object, talk: Conversation) -> object:
    return result, [turn["query"] for turn in talk.history()], [branch["name"] for branch in talk.branches()]


def answer(result: Any, subject: object) -> object:
    return result.answer, result.status


def answer_and_queries(result: Any, talk: Conversation) -> object:
    return queries(result.answer, talk)


def left(result: object, talks: Conversations) -> object:
    return result, [summary.name for summary in talks.summaries()]


def asked_again(result: object, session: RagSession) -> object:
    return result, session.ask(CLASS).answer


VERBS: dict[type, dict[str, tuple[Call, See]]] = {
    Conversation: {
        "ask": (lambda verb, talk: verb(OIL, request_id="r"), answer_and_queries),
        "stream": (lambda verb, talk: verb(OIL), lambda events, talk: queries([type(e) for e in events], talk)),
        "regenerate": (lambda verb, talk: verb(), answer_and_queries),
        "stop": (lambda verb, talk: verb(), result_itself),
        "open_calls": (lambda verb, talk: verb(), result_itself),
        "abandoned_calls": (lambda verb, talk: verb(), result_itself),
        "contents": (lambda verb, talk: verb(), lambda found, talk: (found == talk.contents(), queries("", talk))),
        "history": (lambda verb, talk: verb(), lambda turns, talk: (turns == talk.history(), queries("", talk))),
        "turns": (lambda verb, talk: verb(), lambda turns, talk: [turn["query"] for turn in turns]),
        "search_tree": (lambda verb, talk: verb(talk.history()[0]), lambda tree, talk: str(tree)),
        "tree": (lambda verb, talk: verb(), lambda tree, talk: (tree == talk.tree(), str(tree))),
        "branches": (lambda verb, talk: verb(), lambda branches, talk: queries([b["name"] for b in branches], talk)),
        "switch": (lambda verb, talk: verb("branch-2"), queries),
        "rename_branch": (lambda verb, talk: verb("branch-2", new_name="screws"), queries),
        "delete_branch": (lambda verb, talk: verb("branch-2"), queries),
        "undo": (lambda verb, talk: verb(), lambda turn, talk: queries(turn["query"], talk)),
    },
    Conversations: {
        "prepare": (lambda verb, talks: verb(), left),
        "summaries": (lambda verb, talks: verb(), lambda found, talks: (found == talks.summaries(), len(found))),
        "page": (lambda verb, talks: verb(1), lambda found, talks: (found == talks.page(1), found.total)),
        "delete": (lambda verb, talks: verb("monday"), left),
        "delete_old_conversations": (lambda verb, talks: verb(1, clock=lambda: NEXT_YEAR), left),
        "cleanup_expired_conversations": (lambda verb, talks: verb(clock=lambda: NEXT_YEAR), left),
        "backfill": (lambda verb, talks: verb(dry_run=True), left),
        "close": (lambda verb, talks: verb(), left),
    },
    RagSession: {
        "ask": (lambda verb, session: verb(CLASS), answer),
        "calls": (lambda verb, session: verb(session.ask(CLASS).thread_id), lambda calls, session: len(calls)),
        "close": (lambda verb, session: verb(), asked_again),
    },
    RagGraph: {
        "invoke": (lambda verb, graph: verb(OIL), lambda state, graph: state["answer"]),
        "stream": (lambda verb, graph: verb(OIL, stream_mode="updates"), lambda found, graph: [*map(list, found)]),
        "get_state": (lambda verb, graph: verb(THREAD), lambda found, graph: found == graph.get_state(THREAD)),
        "get_state_history": (lambda verb, graph: verb(THREAD, limit=2), lambda found, graph: [s.next for s in found]),
        "update_state": (
            lambda verb, graph: verb(THREAD, {"answer": "M8"}),
            lambda config, graph: (graph.get_state(THREAD).values["answer"], list(config["configurable"])),
        ),
        "list_threads": (lambda verb, graph: verb(limit=5), lambda found, graph: found == graph.list_threads()),
        "close": (lambda verb, graph: verb(), result_itself),
    },
}


@contextmanager
def conversations(folder: Path) -> Iterator[Conversations]:
    """With one conversation of two turns on the main branch and one on another."""
    with open_conversations(folder, TalkingLLM()) as talks:
        talk = talks.conversation("monday")
        for query, parent in ((CLASS, None), ("And its oil?", None), (SCREW, FIRST)):
            talk.ask(query, parent_turn_id=parent)
        talk.switch("main")
        yield talks


@contextmanager
def conversation(folder: Path) -> Iterator[Conversation]:
    with conversations(folder) as talks:
        yield talks.conversation("monday")


def context() -> RagContext:
    return RagContext(reader=TalkingLLM(), retriever=TableRetriever(TABLE))


def session(folder: Path) -> AbstractContextManager[RagSession]:
    return RagSession(system="naive", context=context(), settings=settings_in(folder))


@contextmanager
def graph(folder: Path) -> Iterator[RagGraph]:
    with build_naive_rag(context=context()) as graph:
        graph.invoke(CLASS, THREAD)
        yield graph


SUBJECTS: dict[type, Callable[[Path], AbstractContextManager[Any]]] = {
    Conversation: conversation,
    Conversations: conversations,
    RagSession: session,
    RagGraph: graph,
}


@pytest.mark.parametrize(("kind", "verb"), PAIRS)
def test_twin_gives_the_same_result(kind: type, verb: str, tmp_path: Path) -> None:
    call, see = VERBS[kind][verb]
    seen = []
    for name, finished in ((verb, done), (f"a{verb}", awaited)):
        folder = tmp_path / name
        folder.mkdir()
        with SUBJECTS[kind](folder) as subject:
            try:
                result = finished(call(getattr(subject, name), subject))
            except NoRunningQuestion as refused:
                result = str(refused)
            seen.append(see(result, subject))
    assert seen[0] == seen[1]


def done(work: object) -> object:
    assert not isinstance(work, Awaitable | AsyncIterator)
    return list(work) if isinstance(work, Iterator) else work


def awaited(work: object) -> object:
    async def wait() -> object:
        if isinstance(work, AsyncIterator):
            return [item async for item in work]
        assert isinstance(work, Awaitable)
        return await work

    return asyncio.run(wait())


def test_the_front_doors_are_a_pair(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    blocking = judgetree.ask(CLASS, system="naive", context=context(), settings=settings)
    twin = asyncio.run(judgetree.aask(CLASS, system="naive", context=context(), settings=settings))
    assert (blocking.answer, blocking.status) == (twin.answer, twin.status) == ("Delta", "answered")
    assert inspect.signature(judgetree.ask) == inspect.signature(judgetree.aask)
    assert front_door.aask.__doc__ == "Async twin of ``ask``."
