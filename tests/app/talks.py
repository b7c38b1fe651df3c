"""A dialogue about the drum and its ladder, which the scripted server can lead over the corpus of these tests."""

from __future__ import annotations

from typing import Any

from judgetree.evaluation.datasets.standards_dialogues import Dialogue, WrittenTurn
from judgetree.modules.reader.prompts import REFUSAL
from tests.facts import fact

FIRST = "Which vessel does Norm A name?"
THICKNESS, STANDALONE_THICKNESS = "How thick is its wall?", "How thick is the wall of the drum?"
AGAIN = "Which vessel was that again?"
PAINT = "How are ladders painted?"
COST = "And what do they cost?"
NAMED = fact("a.md", "Norm A names the drum.", FIRST, "the drum")
THICK = fact("b.md", "The drum's wall is 40 mm thick.", STANDALONE_THICKNESS, "40 mm")
PAINTED = fact("deep/ladders.txt", "Ladders are painted grey.", PAINT, "grey")


def turn(number: int, question: str, answer: str, *, standalone: str | None = None, **more: Any) -> WrittenTurn:
    """A turn after the one before it; it stands alone unless ``standalone`` says otherwise."""
    parent = number - 1 or None
    given = {"type": "single", "standalone": standalone or question, **more}
    return WrittenTurn(turn=number, parent=parent, question=question, answer=answer, **given)


DRUM = Dialogue(
    id="en-dialogue-01",
    lang="en",
    kind="switch",
    turns=(
        turn(1, FIRST, "the drum", supporting=(NAMED,)),
        turn(2, THICKNESS, "40 mm", standalone=STANDALONE_THICKNESS, supporting=(THICK,), relevant_turns=(1,)),
        turn(
            3,
            AGAIN,
            "the drum",
            standalone="Which vessel is it that Norm A names?",
            supporting=(NAMED,),
            relevant_turns=(1,),
            from_history=True,
        ),
        turn(4, PAINT, "grey", supporting=(PAINTED,), topic_switch=True),
        turn(5, COST, "", standalone="What do ladders cost?", type="unanswerable", relevant_turns=(4,)),
    ),
)


def embedded_texts() -> list[str]:
    """What is embedded while the dialogue is led: queries, and turns to be remembered."""
    turns = [(turn.standalone, turn.answer or REFUSAL) for turn in DRUM.turns]
    return [text for query, answer in turns for text in (query, f"{query}\n{answer}")]
