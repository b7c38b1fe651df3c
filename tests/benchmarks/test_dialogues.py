"""The scripted model leads whole dialogues over an index of the corpus; ``benchmarks.dialogues`` leads all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from benchmarks.corpus import COLLECTION, DATA, indexed_standards, questions, settings_for
from benchmarks.played import Played, ask_alone, chunk_ids, play, play_all, saved, turn_is_right
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_dialogues import WrittenTurn, load_dialogues
from judgetree.graphs.conversation.conversations import Conversations
from judgetree.graphs.conversation.turn.result import TurnResult
from judgetree.modules.settings import Settings

CHOSEN = ("en-dialogue-03", "en-dialogue-06", "en-dialogue-18", "zh-dialogue-01", "zh-dialogue-04", "zh-dialogue-05")
DIALOGUES = [each for each in load_dialogues(DATA / "standards_dialogues.jsonl") if each.id in CHOSEN]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of the dialogues, all at the same time, and of their questions alone; by dialogue."""

    system: str
    played: dict[str, Played]
    alone: dict[str, Played]

    def turns(self) -> Iterator[tuple[WrittenTurn, bool, bool, TurnResult, TurnResult]]:
        """Turn, whether it is right in the dialogue and alone, and the two results."""
        for dialogue in DIALOGUES:
            played, alone = self.played[dialogue.id], self.alone[dialogue.id]
            for turn in dialogue.turns:
                right = [turn_is_right(dialogue, turn, each) for each in (played, alone)]
                yield turn, right[0], right[1], played[turn.turn], alone[turn.turn]


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
def outcome(request: pytest.FixtureRequest, settings: Settings) -> Outcome:
    with Conversations(COLLECTION, system=request.param, settings=own_store(settings, request.param)) as talks:
        return Outcome(
            system=request.param,
            played=asyncio.run(play_all(talks, DIALOGUES)),
            alone=asyncio.run(ask_alone(talks, DIALOGUES)),
        )


def own_store(settings: Settings, name: str) -> Settings:
    return settings.model_copy(
        update={"checkpoints": f"sqlite:///{settings.home / name}.sqlite", "conversation_collection": name}
    )


def test_follow_ups_are_answered_as_well_as_their_stand_alone_form(outcome: Outcome) -> None:
    rows = list(outcome.turns())
    assert all(in_dialogue for _, in_dialogue, alone, _, _ in rows if alone)
    assert sum(in_dialogue for _, in_dialogue, _, _, _ in rows) >= 0.9 * len(rows)
    assert [saved(result)["standalone_query"] for _, _, _, result, _ in rows] == [turn.standalone for turn, *_ in rows]


def test_a_topic_switch_uses_no_chunk_that_its_own_search_does_not_find(outcome: Outcome) -> None:
    switches = [(played, alone) for turn, _, _, played, alone in outcome.turns() if turn.topic_switch]
    assert switches
    assert all(chunk_ids(played) <= chunk_ids(alone) for played, alone in switches)


def test_what_history_answers_takes_three_calls_and_no_search(outcome: Outcome) -> None:
    from_history = [saved(played) for turn, is_right, _, played, _ in outcome.turns() if turn.from_history and is_right]
    assert from_history
    assert {turn["answered_from"] for turn in from_history} == {"history"}
    assert all(turn["usage"]["llm_calls"] <= 3 and not turn["rag_thread_id"] for turn in from_history)


def test_conversations_at_the_same_time_give_what_each_gives_by_itself(outcome: Outcome, settings: Settings) -> None:
    system = outcome.system
    with Conversations(COLLECTION, system=system, settings=own_store(settings, f"{system}_by_itself")) as talks:
        for dialogue in DIALOGUES[1:3]:
            by_itself = asyncio.run(play(talks, dialogue, dialogue.id))
            assert told(by_itself) == told(outcome.played[dialogue.id])


def told(played: Played) -> list[tuple[str, str, set[str]]]:
    return [(result.answer, saved(result)["answered_from"], chunk_ids(result)) for result in played.values()]
