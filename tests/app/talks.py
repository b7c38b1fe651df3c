"""A dialogue about the drum and its ladder, which the scripted server can lead over the corpus of these tests."""

from __future__ import annotations

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
DRUM = Dialogue(
    id="en-dialogue-01",
    lang="en",
    kind="switch",
    turns=(
        WrittenTurn(
            turn=1, parent=None, question=FIRST, standalone=FIRST, answer="the drum", type="single", supporting=(NAMED,)
        ),
        WrittenTurn(
            turn=2,
            parent=1,
            question=THICKNESS,
            standalone=STANDALONE_THICKNESS,
            answer="40 mm",
            type="single",
            supporting=(THICK,),
            relevant_turns=(1,),
        ),
        WrittenTurn(
            turn=3,
            parent=2,
            question=AGAIN,
            standalone="Which vessel is it that Norm A names?",
            answer="the drum",
            type="single",
            supporting=(NAMED,),
            relevant_turns=(1,),
            from_history=True,
        ),
        WrittenTurn(
            turn=4,
            parent=3,
            question=PAINT,
            standalone=PAINT,
            answer="grey",
            type="single",
            supporting=(PAINTED,),
            topic_switch=True,
        ),
        WrittenTurn(
            turn=5,
            parent=4,
            question=COST,
            standalone="What do ladders cost?",
            answer="",
            type="unanswerable",
            relevant_turns=(4,),
        ),
    ),
)


def embedded_texts() -> list[str]:
    """What is embedded while the dialogue is led: queries, and turns to be remembered."""
    turns = [(turn.standalone, turn.answer or REFUSAL) for turn in DRUM.turns]
    return [text for query, answer in turns for text in (query, f"{query}\n{answer}")]
