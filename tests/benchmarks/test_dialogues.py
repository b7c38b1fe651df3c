"""The scripted model leads whole dialogues over an index of the corpus; ``benchmarks.dialogues`` leads all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import pytest

from benchmarks.corpus import COLLECTION, DATA, indexed_standards, questions, settings_for
from benchmarks.dialogues import TOPK, Asked, ask_turns, own_store
from benchmarks.played import chunk_ids, play, saved
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_dialogues import load_dialogues
from judgetree.graphs.conversation.turn.result import TurnResult
from judgetree.graphs.conversations import Conversations
from judgetree.modules.settings import Settings

CHOSEN = ("en-dialogue-03", "en-dialogue-06", "en-dialogue-18", "zh-dialogue-01", "zh-dialogue-04", "zh-dialogue-05")
DIALOGUES = [each for each in load_dialogues(DATA / "standards_dialogues.jsonl") if each.id in CHOSEN]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """An index of the corpus, whose vectors the scripted server makes too: that is quick."""
    with ScriptedServer(questions(), dialogues=DIALOGUES) as server:
        home = tmp_path_factory.mktemp("dialogues")
        chosen = settings_for(home, server.base_url, embeddings=f"{server.base_url}#embedder")
        with indexed_standards(chosen):
            pass
        yield chosen


@pytest.fixture(scope="module", params=["judge", "naive"])
def system(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def asked(system: str, settings: Settings) -> list[Asked]:
    return ask_turns(system, DIALOGUES, settings)


@pytest.mark.slow
def test_follow_ups_are_answered_as_well_as_their_stand_alone_form(asked: list[Asked]) -> None:
    assert all(each.is_right for each in asked if each.is_right_alone)
    assert sum(each.is_right for each in asked) >= 0.9 * len(asked)
    assert [saved(each.result)["standalone_query"] for each in asked] == [each.turn.standalone for each in asked]


@pytest.mark.slow
def test_a_topic_switch_uses_no_chunk_that_its_own_search_does_not_find(asked: list[Asked]) -> None:
    switches = [each for each in asked if each.turn.topic_switch]
    assert switches
    assert all(chunk_ids(each.result) <= chunk_ids(each.alone) for each in switches)


@pytest.mark.slow
def test_what_history_answers_takes_three_calls_and_no_search(asked: list[Asked]) -> None:
    from_history = [saved(each.result) for each in asked if each.turn.from_history and each.is_right]
    assert from_history
    assert {turn["answered_from"] for turn in from_history} == {"history"}
    assert all(turn["usage"]["llm_calls"] <= 3 and not turn["rag_thread_id"] for turn in from_history)


@pytest.mark.slow
def test_conversations_at_the_same_time_give_what_each_gives_by_itself(
    system: str, asked: list[Asked], settings: Settings
) -> None:
    store = own_store(settings, f"{system}_by_itself")
    with Conversations(COLLECTION, system=system, topk=TOPK, settings=store) as talks:
        for dialogue in DIALOGUES[1:3]:
            by_itself = asyncio.run(play(talks, dialogue, dialogue.id)).values()
            assert told(by_itself) == told(each.result for each in asked if each.dialogue is dialogue)


def told(results: Iterable[TurnResult]) -> list[tuple[str, str, set[str]]]:
    return [(result.answer, saved(result)["answered_from"], chunk_ids(result)) for result in results]
