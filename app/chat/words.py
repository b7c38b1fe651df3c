"""Descriptions of conversations: origin of an answer, turns, sources, branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...graphs.drawing.layout import columns, one_line
from ...modules.memory.turns import AnsweredFrom, Branch, ChunkRef, OpenTurn, QaPair
from ...modules.passage_names import full_passage_name

ORIGINS: Mapping[AnsweredFrom, str] = {
    "search": "",
    "history": "from the conversation",
    "web": "from the web",
    "knowledge": "from general knowledge: no document says so",
    "small_talk": "",
}
REFUSED = "no answer: neither the conversation nor the documents say it"
STEPS: Mapping[str, str] = {
    "load_history": "reading the conversation",
    "fold_summary": "summing up earlier turns",
    "direct_answer": "is anything asked?",
    "select_turns": "which earlier turns matter?",
    "digest_evidence": "shortening what they rest on",
    "assess_history": "do they hold the answer?",
    "answer_from_history": "answering from the conversation",
    "condense": "understanding the question",
    "web_or_rag": "documents or web?",
    "search_web": "searching the web",
    "call_rag": "searching",
    "answer_from_knowledge": "answering from general knowledge",
    "save_turn": "saving",
}
"""Descriptions of the steps of a turn, by graph node."""


def origin_of(turn: QaPair) -> str:
    """Describe the origin of an answer; ``""`` for a search."""
    return REFUSED if turn["status"] == "refused" else ORIGINS[turn["answered_from"]]


def source_lines(refs: Sequence[ChunkRef]) -> list[str]:
    """Return a line for each source chunk: number, source, judge's score, key passage and reason, as far as known."""
    return [f"[{number}] {_format_source(ref)}" for number, ref in enumerate(refs, start=1)]


def _format_source(ref: ChunkRef) -> str:
    quoted, reason = ref.get("key_passage", ""), ref.get("reason", "")
    words = [
        one_line(full_passage_name(ref["source"], ref.get("title", ""))),
        "" if ref["score"] is None else f"score {ref['score']}",
        f"“{one_line(quoted)}”" if quoted else "",
        one_line(reason),
    ]
    return " · ".join(filter(None, words))


def format_filter(turn: QaPair) -> str:
    """Describe what the filter did for the answer; ``""`` if it was not asked, or every chunk stayed."""
    report = turn.get("insert_block")
    if report is None or not (report["taken_out"] or report["unknown"] or report["none_left"]):
        return ""
    if report["none_left"]:
        return f"the filter found that none of {report['judged']} chunks belongs to the answer: all were read"
    unknown = f", {report['unknown']} unknown" if report["unknown"] else ""
    return f"the filter took out {report['taken_out']} of {report['judged']} chunks{unknown}"


def turns_text(turns: Iterable[QaPair]) -> str:
    """Describe turns: number, question, answer, and the origin, if it is not a search."""
    return "\n".join(_turn_text(turn) for turn in turns)


def branches_text(branches: Sequence[Branch], active: str) -> str:
    """Return a line for each branch: a star if active, name, newest turn, and fork."""
    names = {branch["branch_id"]: branch["name"] for branch in branches}
    room = max((columns(branch["name"]) for branch in branches), default=0)
    return "\n".join(
        f"{'*' if branch['name'] == active else ' '} {branch['name']}{' ' * (room - columns(branch['name']))}  "
        f"{_format_reach(branch, names)}"
        for branch in branches
    )


def format_open_turn(turn: OpenTurn) -> str:
    """Describe an unfinished turn."""
    return f"Turn {turn['turn_number']} is not answered yet: {one_line(turn['query'])}"


def _turn_text(turn: QaPair) -> str:
    origin = origin_of(turn)
    answer = turn["answer"].replace("\n", "\n   ")
    return f"{turn['turn_number']}. {one_line(turn['query'])}\n   {answer}{f'  ({origin})' if origin else ''}"


def _format_reach(branch: Branch, names: Mapping[str, str]) -> str:
    reach = f"up to turn {branch['head_number']}" if branch["head_number"] else "no turn yet"
    if not branch["forked_from"]:
        return reach
    return f"{reach}, from turn {branch['fork_number']} of {names.get(branch['parent_branch_id'], '?')}"
