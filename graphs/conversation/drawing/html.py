"""A conversation as one self-contained HTML page: its picture, and every turn with its search tree.

Text of questions, documents and models is escaped HTML, or JSON that the script turns into text nodes. A
Content-Security-Policy allows only this page's own script and style, by hash. Each search tree is packed; the browser
unpacks it when its turn is opened or searched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....modules.memory.turns import ChunkRef, OpenTurn, QaPair
from ....modules.storage.texts import html_text, printable
from ...drawing.html import (
    Json,
    SharedTexts,
    describe_chunk,
    html_page,
    json_in_html,
    pack,
    picture_block,
    query_data,
)
from ...drawing.layout import one_line, shorten
from ...drawing.words import VERDICT_MARKS, VERDICT_WORDS, format_usage
from ...rag.search_tree import SearchTree
from ...tree.nodes import ChunkNode, VerdictLabel
from .text import draw_conversation_text
from .turn_tree import Lane, TurnTree
from .words import (
    ANSWERED_WORDS,
    OPEN_WORDS,
    format_basis,
    format_conversation,
    format_needed,
    format_open_search,
    format_search,
    format_source,
    format_standalone,
    format_switch,
    origin_of,
)

PICTURE_MAX_TURNS = 500
_TITLE_COLUMNS = 80


def draw_conversation_html(tree: TurnTree, draw: Callable[[], str], *, picture: bool | None = None) -> str:
    """Draw the conversation as an HTML document that needs no other file, server or network.

    ``draw`` makes its SVG; ``picture`` adds it, and None adds it for up to 500 turns if it can be drawn.

    Raises:
        DependencyError: ``picture`` is True and no renderer is installed, or it fails.
    """
    title = tree.title or tree.name
    texts = SharedTexts()
    trees = [_packed(tree.tree_of(turn), texts) for turn in tree.turns]
    if tree.open_turn:
        trees.append(_packed(tree.open_tree, texts))
    # A conversation is tall, so it is shown in actual size, for scrolling.
    picture_class, is_small = "picture actual-size", len(tree.turns) <= PICTURE_MAX_TURNS
    return html_page(
        __package__,
        packs=True,
        title=html_text(shorten(title, _TITLE_COLUMNS)),
        heading=html_text(one_line(title)),
        conversation=html_text(one_line(tree.name)),
        totals=html_text(format_conversation(tree)),
        picture=picture_block(draw, wanted=picture, is_small=is_small, css_class=picture_class),
        text=html_text(draw_conversation_text(tree)),
        index=json_in_html(_index(tree)),
        trees=json_in_html(trees),
        texts=json_in_html(pack(texts.all())),
    )


def _packed(tree: SearchTree | None, texts: SharedTexts) -> Json:
    if tree is None:
        return None

    def describe(chunk: ChunkNode) -> Mapping[str, Json]:
        return {**describe_chunk(chunk), "text": texts.place(printable(chunk.text))}

    return pack(query_data(tree.root, describe, transcripts=tree.read_transcripts(), texts=texts))


def _index(tree: TurnTree) -> Json:
    """Describe the branches, and all turns without their trees; the open turn comes last."""
    places = {turn["turn_id"]: place for place, turn in enumerate(tree.turns)}
    finders = {turn["rag_thread_id"]: turn for turn in tree.turns if turn["rag_thread_id"]}
    turns: list[Json] = [_turn(tree, turn, places, finders) for turn in tree.turns]
    if tree.open_turn:
        turns.append(_open_turn(tree, tree.open_turn))
        places[tree.open_turn["turn_id"]] = len(tree.turns)
    return {"branches": [_branch(tree, lane, places) for lane in tree.lanes()], "turns": turns}


def _branch(tree: TurnTree, lane: Lane, places: Mapping[str, int]) -> Json:
    own = [places[turn["turn_id"]] for turn in lane.turns]
    if lane.open_turn:
        own.append(places[lane.open_turn["turn_id"]])
    return {
        "name": printable(lane.branch["name"]),
        "active": lane.is_active,
        "origin": printable(origin_of(tree, lane)),
        "fork": places.get(lane.branch["forked_from"]),
        "turns": own,
    }


def _turn(tree: TurnTree, turn: QaPair, places: Mapping[str, int], finders: Mapping[str, QaPair]) -> Json:
    facts = {
        "earlier turns": format_needed(tree, turn),
        "collection": format_switch(tree, turn) or turn["collection"],
        "answered": turn["timestamp"],
        "turn": turn["turn_id"],
        "request": turn["request_id"],
        "search tree": turn["rag_thread_id"],
        "tokens in a prompt": f"about {turn['token_count']:,}",
    }
    return {
        "id": printable(turn["turn_id"]),
        "number": turn["turn_number"],
        "from": turn["answered_from"],
        "mark": ANSWERED_WORDS[turn["answered_from"]],
        "basis": format_basis(turn),
        "status": turn["status"],
        "query": printable(turn["query"]),
        "standalone": printable(format_standalone(turn)),
        "answer": printable(turn["answer"]),
        "summary": printable(turn["summary"]),
        "cost": format_usage(turn["usage"]),
        "searched": format_search(tree, turn),
        "sources": [_source(ref, turn, places, finders) for ref in turn["chunks"]],
        "facts": [[name, printable(fact)] for name, fact in facts.items() if fact],
    }


def _open_turn(tree: TurnTree, turn: OpenTurn) -> Json:
    facts = {"turn": turn["turn_id"], "request": turn["request_id"]}
    return {
        "id": printable(turn["turn_id"]),
        "number": turn["turn_number"],
        "from": "open",
        "mark": OPEN_WORDS,
        "basis": OPEN_WORDS,
        "status": "open",
        "query": printable(turn["query"]),
        "standalone": "",
        "answer": "",
        "summary": "",
        "cost": "",
        "searched": format_open_search(tree),
        "sources": [],
        "facts": [[name, printable(fact)] for name, fact in facts.items() if fact],
    }


def _source(ref: ChunkRef, turn: QaPair, places: Mapping[str, int], finders: Mapping[str, QaPair]) -> Json:
    labels: dict[int | None, VerdictLabel] = {2: "2", 1: "1", 0: "0"}
    label = labels.get(ref["score"], "pending")
    finder = finders.get(ref["thread_id"])
    is_reused = finder is not None and ref["thread_id"] != turn["rag_thread_id"]
    return {
        "label": label,
        "mark": VERDICT_MARKS[label],
        "words": VERDICT_WORDS[label],
        "source": printable(format_source(ref)),
        "score": "" if ref["retrieval_score"] is None else f"{ref['retrieval_score']:.3f}",
        "found_by": f"found by turn {finder['turn_number']}" if finder and is_reused else "",
        "finder": places[finder["turn_id"]] if finder and is_reused else None,
    }
