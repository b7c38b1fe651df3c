"""The scripted model leads conversations: its replies one by one, and whole dialogues over an index of the corpus."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgetree.app.scripted.answers import PromptMismatch, ScriptedAnswers
from judgetree.app.scripted.conversation import ScriptedTalk, conversation_reply, standalone_questions
from judgetree.app.scripted.server import ScriptedServer, find_dialogues
from judgetree.evaluation.datasets.standards_dialogues import WrittenTurn, load_dialogues
from judgetree.graphs.conversation.conversations import Conversations
from judgetree.graphs.conversation.turn.result import TurnResult
from judgetree.graphs.rag.result import SystemName
from judgetree.modules.calls.messages import Message
from judgetree.modules.memory import prompts
from judgetree.modules.memory.turns import QaPair, imported_turn
from judgetree.modules.reader.prompts import REFUSAL, digest_messages, reader_messages
from judgetree.modules.settings import Settings
from tests.app.played import Played, ask_alone, chunk_ids, play, play_all, saved, turn_is_right
from tests.app.talks import AGAIN, COST, DRUM, FIRST, NAMED, PAINT, STANDALONE_THICKNESS, THICK, THICKNESS
from tests.benchmarks.corpus import COLLECTION, DATA, indexed_standards, questions, settings_for

TALK = ScriptedTalk(ScriptedAnswers(standalone_questions([DRUM])), [DRUM])
STANDALONE_AGAIN = DRUM.turns[2].standalone
PASSAGES = f"[1] a.md\n# Norm A\n\n{NAMED.quote}\n\n[2] b.md\n{THICK.quote}\n\n[3] c.md\nLadders are steep."


def turns(*pairs: tuple[str, str]) -> list[QaPair]:
    chain: list[QaPair] = []
    for query, answer in pairs:
        parent = chain[-1] if chain else None
        chain.append(imported_turn(query, answer, parent=parent, turn_id=query, timestamp=""))
    return chain


NAMED_TURN = turns((FIRST, "the drum"))
BOTH_TURNS = turns((PAINT, "grey"), (FIRST, "the drum"))
SHOWN = prompts.render_turns(NAMED_TURN)


def reply(messages: list[Message]) -> str:
    answered = conversation_reply(TALK, messages)
    assert answered is not None
    return answered.text


@pytest.mark.parametrize(
    ("earlier", "query", "needed"),
    [
        (NAMED_TURN, THICKNESS, [1]),
        (BOTH_TURNS, THICKNESS, [2]),
        (BOTH_TURNS, COST, [1]),
        (turns((PAINT, "grey")), THICKNESS, []),
        (NAMED_TURN, PAINT, []),
        (NAMED_TURN, "Who?", []),
    ],
)
def test_those_shown_turns_are_selected_that_a_question_leans_on(
    earlier: list[QaPair], query: str, needed: list[int]
) -> None:
    said = reply(prompts.select_messages(prompts.render_turns(earlier), query))
    assert prompts.SelectionReply.model_validate_json(said).turns == needed


def test_what_only_the_summary_tells_of_comes_along_with_the_newest_turn() -> None:
    summary = reply(prompts.summary_messages(prompts.render_turns(NAMED_TURN, summary="Before: nothing.")))
    assert summary == f"Before: nothing.\n{FIRST}\nthe drum"
    shown = prompts.render_turns(turns((PAINT, "grey")), summary=summary)
    assert json.loads(reply(prompts.select_messages(shown, THICKNESS))) == {"turns": [1]}
    assert reply(prompts.condense_messages(shown, THICKNESS)) == STANDALONE_THICKNESS
    assert (
        reply(prompts.summary_messages(prompts.render_turns(turns((PAINT, "grey")), summary=summary)))
        == f"{summary}\n{PAINT}\ngrey"
    )


@pytest.mark.parametrize(
    ("query", "passages", "question", "useful", "answer"),
    [
        (THICKNESS, PASSAGES, STANDALONE_THICKNESS, [2], "40 mm"),
        (THICKNESS, PASSAGES.partition("[2]")[0], STANDALONE_THICKNESS, [], ""),
        (AGAIN, PASSAGES, STANDALONE_AGAIN, [1], "the drum"),
        (AGAIN, "", STANDALONE_AGAIN, [], "the drum"),
        ("Who?", PASSAGES, "Who?", [], ""),
    ],
)
def test_an_assessment_says_what_turns_and_passages_give(
    query: str, passages: str, question: str, useful: list[int], answer: str
) -> None:
    said = prompts.AssessmentReply.model_validate_json(reply(prompts.assess_messages(SHOWN, passages, query)))
    assert (said.question, said.useful, said.answer) == (question, useful, answer)


def test_a_digest_keeps_what_is_needed_with_its_number_and_is_understood() -> None:
    digest = reply(digest_messages(PASSAGES, THICKNESS))
    assert digest == f"{THICK.quote} [2]"
    said = json.loads(reply(prompts.assess_messages(SHOWN, digest, THICKNESS)))
    assert (said["useful"], said["answer"]) == ([2], "40 mm")


def test_a_history_without_numbers_is_understood_too() -> None:
    shown = prompts.render_pairs([(FIRST, "the drum"), (THICKNESS, "40 mm")])
    assert reply(prompts.condense_messages(shown, AGAIN)) == STANDALONE_AGAIN
    assert json.loads(reply(prompts.select_messages(shown, AGAIN))) == {"turns": []}


@pytest.mark.parametrize(
    ("message", "is_small"), [("Hello there!", True), ("谢谢", True), ("Hi, how thick is it?", False), (FIRST, False)]
)
def test_greetings_are_small_talk(message: str, is_small: bool) -> None:
    said = prompts.SmallTalkReply.model_validate_json(reply(prompts.small_talk_messages(message)))
    assert (said.small_talk, bool(said.reply)) == (is_small, is_small)


def test_the_documents_are_where_everything_is_looked_for() -> None:
    assert json.loads(reply(prompts.route_messages(FIRST))) == {"route": "rag"}


def test_what_it_knows_by_heart_it_says_only_where_that_is_wanted() -> None:
    messages = [("system", f"{prompts.KNOWLEDGE_SYSTEM}\n\nSummary: none"), ("user", "?"), ("user", FIRST)]
    assert reply(messages) == REFUSAL
    known = conversation_reply(TALK, messages, knows_by_heart=True)
    assert known is not None
    assert known.text == "the drum"


def test_other_prompts_are_left_to_the_other_scripts() -> None:
    assert conversation_reply(TALK, reader_messages(FIRST, PASSAGES)) is None
    assert conversation_reply(TALK, []) is None


def test_a_user_message_that_left_its_template_is_noticed() -> None:
    with pytest.raises(PromptMismatch, match=r"memory\.prompts"):
        conversation_reply(TALK, [("system", prompts.SELECT_SYSTEM), ("user", FIRST)])


def test_dialogues_are_found_beside_the_questions(tmp_path: Path) -> None:
    file = DATA / "standards_dialogues.jsonl"
    assert find_dialogues(beside=DATA / "standards_qa.jsonl") == find_dialogues(file) == load_dialogues(file)
    assert find_dialogues(beside=tmp_path / "standards_qa.jsonl") == find_dialogues() == ()


# --- whole dialogues; all of them are played by tests/benchmarks/dialogues.py ---

CHOSEN = ("en-dialogue-03", "en-dialogue-06", "en-dialogue-18", "zh-dialogue-01", "zh-dialogue-04", "zh-dialogue-05")
DIALOGUES = [each for each in load_dialogues(DATA / "standards_dialogues.jsonl") if each.id in CHOSEN]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of the dialogues, all at the same time, and of their questions alone; by dialogue."""

    system: SystemName
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
