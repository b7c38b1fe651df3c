"""The messages of a prompt with a conversation before it: what goes in, in which order, and what a budget leaves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..calls.messages import Message
from ..calls.tokens import is_longer
from ..reader.material import as_material
from ..reader.prompts import REFUSAL
from .prompts import both_forms
from .turns import QaPair, count_tokens

SUMMARY_HEADING = "Summary of the conversation so far:"
KNOWLEDGE_HEADING = "Passages:"

_PARAGRAPH_END = re.compile(r"\n\n")


def build_context_messages(
    *,
    system: str,
    question: str,
    relevant: Iterable[QaPair] = (),
    recent: Iterable[QaPair] = (),
    knowledge: str = "",
    summary: str = "",
    token_budget: int,
) -> list[Message]:
    """System message, summary, relevant history, recent history, knowledge, question: in this order, within the budget.

    A turn is a pair of messages, "user" with its question (in the user's words, and below them as it was understood)
    and "assistant" with its answer.
    Both histories are shown oldest first; a turn that is in both is shown as a recent one, and only once. Summary and
    knowledge come from models and passages, so they are messages of the user and never of the system.

    System message and question always stay, even where they alone exceed the budget. What is left of it goes to the
    knowledge, the summary, the recent turns from the newest on, and the relevant turns from the best on. What does not
    fit is left out whole, and the next one is tried; only knowledge is cut, at the end of a passage (of a paragraph, if
    its passages have no numbers), and from there on.

    Args:
        system: Instructions.
        question: The text of the last message.
        relevant: Best first.
        recent: Oldest first.
        knowledge: Passages, numbered as ``evidence.render_evidence`` does; ``""`` for none.
        summary: Of the conversation before; ``""`` for none.
        token_budget: Tokens of all messages together, as ``turns.count_tokens`` counts them.
    """
    left = token_budget - count_tokens(system, question)
    knowledge = fitting_passages(knowledge, left - count_tokens(f"{KNOWLEDGE_HEADING}\n"))
    left -= count_tokens(*(text for _, text in _knowledge_messages(knowledge)))
    summarised = _summary_messages(summary)
    if (cost := count_tokens(*(text for _, text in summarised))) <= left:
        left -= cost
    else:
        summarised = []
    newest_first = list(recent)[::-1]
    kept, left = _fitting_turns(newest_first, left)
    recent_ids = {turn["turn_id"] for turn in newest_first}
    kept_relevant, _ = _fitting_turns((turn for turn in relevant if turn["turn_id"] not in recent_ids), left)
    return [
        ("system", system),
        *summarised,
        *_turn_messages(sorted(kept_relevant, key=lambda turn: (turn["turn_number"], turn["timestamp"]))),
        *_turn_messages(kept[::-1]),
        *_knowledge_messages(knowledge),
        ("user", question),
    ]


def _fitting_turns(turns: Iterable[QaPair], left: int) -> tuple[list[QaPair], int]:
    """The turns that fit, tried in their order, each id once; and the tokens left then."""
    kept: dict[str, QaPair] = {}
    for turn in turns:
        cost = count_tokens(*(text for _, text in _turn_messages([turn])))
        if turn["turn_id"] not in kept and cost <= left:
            kept[turn["turn_id"]] = turn
            left -= cost
    return list(kept.values()), left


def _turn_messages(turns: Sequence[QaPair]) -> list[Message]:
    pairs = (
        (("user", both_forms(turn["query"], turn["standalone_query"])), ("assistant", turn["answer"] or REFUSAL))
        for turn in turns
    )
    # No endpoint takes an empty text: a greeting has no question.
    return [message for pair in pairs for message in pair if message[1]]


def _summary_messages(summary: str) -> list[Message]:
    return [("user", f"{SUMMARY_HEADING}\n{as_material(summary)}")] if summary else []


def _knowledge_messages(knowledge: str) -> list[Message]:
    return [("user", f"{KNOWLEDGE_HEADING}\n{knowledge}")] if knowledge else []


def fitting_passages(knowledge: str, max_tokens: int) -> str:
    """As many whole passages as have no more tokens together, from the first on; ``""`` if the first is too long."""
    fitting = ""
    for end in _passage_ends(knowledge):
        if is_longer(knowledge[:end], max_tokens):
            break
        fitting = knowledge[:end]
    return fitting


def _passage_ends(knowledge: str) -> list[int]:
    """Where passages end: before the next number, since a passage may hold empty lines; else at each empty line."""
    if not knowledge.startswith("[1] "):
        return [*(match.start() for match in _PARAGRAPH_END.finditer(knowledge)), len(knowledge)]
    ends: list[int] = []
    position = 0
    while (position := knowledge.find(f"\n\n[{len(ends) + 2}] ", position)) >= 0:
        ends.append(position)
    return [*ends, len(knowledge)]
