"""Conversations that another version has written: read, gone on with, or refused."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from judgetree.graphs.checkpoints import open_checkpointer_sync
from judgetree.graphs.conversation.conversations import Conversations
from judgetree.graphs.conversation.state import SCHEMA_VERSION, ConversationState, migrate
from judgetree.modules.background_loop import background_loop
from judgetree.modules.errors import LoadingError
from tests.graphs.conversation.talk import ANSWERS, CLASS, OIL, TalkingLLM, open_conversations, settings_in

FIXTURES = Path(__file__).parent / "fixtures"


def stored(version: int) -> dict[str, object]:
    state: dict[str, object] = json.loads((FIXTURES / f"version_{version}.json").read_text(encoding="utf-8"))
    return state


class StateOfVersion1(TypedDict, total=False):
    schema_version: int
    chat_history: list[dict[str, str]]


def write_as_version_1_did(folder: Path, session_id: str, values: Mapping[str, object]) -> None:
    """As the state of a LangGraph graph, on the conversation's thread, without further metadata."""
    builder = StateGraph(StateOfVersion1)
    builder.add_node("answer", lambda state: {})
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    config: RunnableConfig = {"configurable": {"thread_id": f"conversation:{session_id}"}}
    with open_checkpointer_sync(settings_in(folder).checkpoint_url) as saver:
        builder.compile(checkpointer=saver).invoke(cast(StateOfVersion1, values), config)


@pytest.fixture
def llm() -> TalkingLLM:
    return TalkingLLM()


@pytest.fixture
def talks(tmp_path: Path, llm: TalkingLLM) -> Iterator[Conversations]:
    write_as_version_1_did(tmp_path, "old", stored(1))
    with open_conversations(tmp_path, llm) as opened:
        yield opened


def test_version_1_is_read_as_a_line_of_turns_with_the_same_ids_each_time(talks: Conversations) -> None:
    talk = talks.conversation("old")
    turns = talk.history()
    assert [(turn["query"], turn["answer"], turn["turn_number"]) for turn in turns] == [
        (CLASS, "Delta", 1),
        ("它是什么颜色的？", "绿色", 2),
    ]
    assert [turn["parent_turn_id"] for turn in turns] == ["", turns[0]["turn_id"]]
    assert talk.history() == talk.turns() == turns


def test_version_1_is_gone_on_with_and_is_of_this_version_from_then_on(
    tmp_path: Path, talks: Conversations, llm: TalkingLLM
) -> None:
    talk = talks.conversation("old")
    before = talk.history()
    assert talk.ask("And its oil?").answer == ANSWERS[OIL]
    assert llm.asked() == ["select", "assess", "read"]
    assert talk.history()[:2] == before
    assert [summary.turns for summary in talks.summaries()] == [3]
    after = talk.history()
    talks.close()
    assert talk.history() == after
    assert talk.ask("And its oil?").answer == ANSWERS[OIL]
    assert [turn["turn_id"] for turn in talk.history()[:3]] == [turn["turn_id"] for turn in after]


def test_version_1_is_branched(talks: Conversations) -> None:
    talk = talks.conversation("old")
    first, second = talk.history()
    assert talk.ask("And its oil?", parent_turn_id=first["turn_id"]).branch == "branch-2"
    assert [turn["answer"] for turn in talk.history()] == ["Delta", ANSWERS[OIL]]
    talk.switch("main")
    assert talk.history() == [first, second]


def test_version_1_whose_first_change_is_no_question_keeps_its_turns(talks: Conversations) -> None:
    talk = talks.conversation("old")
    before = talk.history()
    talk.rename_branch("main", "first")
    assert talk.history() == before
    assert (talk.active_branch, [each.title for each in talks.summaries()]) == ("first", [CLASS])


def test_version_1_is_deleted_by_name_or_by_age_also_if_nobody_opened_it(tmp_path: Path, talks: Conversations) -> None:
    write_as_version_1_did(tmp_path, "older", stored(1))
    assert talks.delete("older") == 1
    assert talks.conversation("older").history() == []
    assert talks.delete_old_conversations(30).conversations == ("old",)
    assert talks.conversation("old").history() == []


@pytest.mark.parametrize("timestamp", ["", "yesterday"])
def test_version_1_without_a_usable_time_is_as_old_as_its_checkpoint(
    tmp_path: Path, talks: Conversations, timestamp: str
) -> None:
    turn = {"query": "q", "answer": "a", "timestamp": timestamp}
    write_as_version_1_did(tmp_path, "new", {"chat_history": [turn]})
    assert talks.delete_old_conversations(30).conversations == ("old",)
    assert len(talks.conversation("new").history()) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"schema_version": 99}, "schema version 99; this judgetree reads up to 2", id="newer"),
        pytest.param({"chat_history": [{"query": "q"}]}, "version 1 is damaged", id="without answers"),
        pytest.param({"chat_history": ["q"]}, "version 1 is damaged", id="no turns"),
    ],
)
def test_what_cannot_be_read_is_refused_and_left_as_it_is(
    tmp_path: Path, talks: Conversations, llm: TalkingLLM, values: dict[str, object], message: str
) -> None:
    write_as_version_1_did(tmp_path, "strange", values)
    talk = talks.conversation("strange")
    with pytest.raises(LoadingError, match=message):
        talk.ask(CLASS)
    with pytest.raises(LoadingError, match=message):
        talk.switch("main")
    with pytest.raises(LoadingError, match=message):
        talks.delete("strange")
    assert llm.asked() == []


def test_one_that_cannot_be_read_does_not_hide_the_others(talks: Conversations) -> None:
    talks.conversation("mine").ask(CLASS)
    store = background_loop().run(talks.open()).store
    state = cast(ConversationState, {**stored(2), "schema_version": 99})
    background_loop().run(store.begin("newer", state))
    assert [summary.conversation_id for summary in talks.summaries()] == ["mine"]


def test_the_state_of_this_version_is_read_as_it_is() -> None:
    state = stored(SCHEMA_VERSION)
    assert migrate(state, "stored") == state


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_every_version_is_read_as_todays_form(version: int) -> None:
    """If this fails: raise ``SCHEMA_VERSION``, store a state of the new one here, and let ``migrate`` read the old."""
    assert misfits(migrate(stored(version), "stored"), ConversationState) == []


def test_every_part_of_a_state_stands_in_the_stored_one() -> None:
    state = cast(ConversationState, stored(SCHEMA_VERSION))
    assert state["open_turn"]
    assert len(state["branches"]) > 1
    assert state["chat_history"][0]["chunks"]


def misfits(value: object, hint: object, place: str = "") -> list[str]:
    """Places at which plain data is not what the annotation says; of a ``TypedDict`` only optional keys may lack."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_typeddict(hint):
        if not isinstance(value, dict):
            return [place]
        hints = get_type_hints(hint)
        extras = get_type_hints(hint, include_extras=True)
        optional = {key for key, extra in extras.items() if get_origin(extra) is NotRequired}
        wrong = [f"{place}.{key}" for key in (hints.keys() ^ value.keys()) - optional]
        return wrong + [each for key in hints.keys() & value.keys() for each in misfits(value[key], hints[key], key)]
    if origin is list and isinstance(value, list):
        return [each for item in value for each in misfits(item, arguments[0], place)]
    if origin is dict and isinstance(value, dict):
        return [each for item in value.values() for each in misfits(item, arguments[1], place)]
    if origin in (Union, types.UnionType):
        return [] if any(misfits(value, each, place) == [] for each in arguments) else [place]
    fits = value in arguments if origin is Literal else isinstance(hint, type) and isinstance(value, hint)
    return [] if fits else [place]
