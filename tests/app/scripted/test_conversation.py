"""The scripted model leads conversations: its replies one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.app.scripted.answers import ScriptedAnswers
from judgetree.app.scripted.conversation import ScriptedConversation, conversation_reply, standalone_questions
from judgetree.app.scripted.server import find_dialogues
from judgetree.evaluation.datasets.standards_dialogues import load_dialogues
from judgetree.modules.calls.messages import Message
from judgetree.modules.memory import prompts
from judgetree.modules.memory.turns import QaPair, imported_turn
from judgetree.modules.reader.prompts import REFUSAL, digest_messages
from tests.app.talks import AGAIN, COST, DRUM, FIRST, NAMED, PAINT, STANDALONE_THICKNESS, THICK, THICKNESS

DATA = Path(__file__).parents[3] / "data"
TALK = ScriptedConversation(ScriptedAnswers(standalone_questions([DRUM])), [DRUM])
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
def test_the_turns_a_question_leans_on_are_selected(earlier: list[QaPair], query: str, needed: list[int]) -> None:
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
def test_an_assessment_names_useful_passages(
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


def test_dialogues_are_found_beside_the_questions(tmp_path: Path) -> None:
    file = DATA / "standards_dialogues.jsonl"
    assert find_dialogues(beside=DATA / "standards_qa.jsonl") == find_dialogues(file) == load_dialogues(file)
    assert find_dialogues(beside=tmp_path / "standards_qa.jsonl") == find_dialogues() == ()
