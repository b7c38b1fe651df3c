"""A conversation with two branches and all that may befall a turn, made up by hand."""

from __future__ import annotations

from judgetree.graphs.conversation.tree import ConversationTree
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode
from judgetree.modules.memory.turns import MAIN_BRANCH, Branch, ChunkRef, OpenTurn, QaPair, new_branch, rag_thread_of
from tests.graphs.fakes import answered
from tests.modules.turn_factory import make_ref, make_turn

ATTACK = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "--><!--'\"\u2028&lt;\n$x \\N"
)


def turn(number: int, parent: QaPair | None, query: str, answer: str, **changes: object) -> QaPair:
    said = {"query": query, "standalone_query": query, "answer": answer}
    return {**make_turn(number), **said, "parent_turn_id": parent["turn_id"] if parent else "", **changes}  # type: ignore[typeddict-item]


def found_by(searched: QaPair, name: str, score: int = 2) -> ChunkRef:
    return {**make_ref(name, score=score), "source": f"{name}.md", "thread_id": searched["rag_thread_id"]}  # type: ignore[typeddict-item]


def search_tree(thread_id: str, text: str, query: str = "Searched?") -> SearchTree:
    """A root with a chunk whose sub-question found another."""
    deep = ChunkNode(chunk_id="d", text=f"deep down: {text}", metadata={"verdict": "judged", "score": 2})
    below = answered(f"{thread_id}-1", "第二层?", "deep", deep, parent_thread_id=thread_id, depth=1)
    chunk = ChunkNode(chunk_id="c", text=text, metadata={"verdict": "judged", "score": 1}, sub_runs=(below,))
    return SearchTree(root=answered(thread_id, query, "a", chunk))


def conversation(text: str = ATTACK) -> ConversationTree:
    """Main: searched, from its evidence, refused with a tree that is gone. A fork of turn 1: web, and an open turn."""
    conversation_id = f"talk {text}".encode(errors="replace").decode()
    first = turn(1, None, f"First? {text}", text, answered_from="search", rag_thread_id="r1")
    first["chunks"] = [found_by(first, "weir"), found_by(first, "mill", 1)]
    reused = turn(2, first, "And it?", "堰边", answered_from="history", standalone_query=f"Where is it? {text}")
    reused["chunks"] = [first["chunks"][0]]
    refused = turn(3, reused, "磨坊在哪里?", "I cannot answer.", answered_from="search", rag_thread_id="r3")
    refused["status"] = "refused"
    web = turn(2, first, "The weather?", "rain", answered_from="web", turn_id="web", branch_id="b2", summary=text)
    web["timestamp"] = refused["timestamp"]
    main: Branch = {**new_branch(MAIN_BRANCH, "main"), "head_turn_id": refused["turn_id"], "head_number": 3}  # type: ignore[typeddict-item]
    fork: Branch = {**new_branch("b2", f"fork {text}", forked_from=first), "head_turn_id": "web", "head_number": 2}  # type: ignore[typeddict-item]
    waiting = OpenTurn(
        turn_id="open", parent_turn_id="web", branch_id="b2", turn_number=3, query=f"Open? {text}", request_id=""
    )
    return ConversationTree(
        name=conversation_id,
        conversation_id=conversation_id,
        title=first["query"],
        branches=(main, fork),
        turns=(first, reused, refused, web),
        trees={
            "r1": search_tree("r1", f"needle {text}"),
            "r3": None,
            rag_thread_of(conversation_id, "open"): search_tree("r-open", "begun"),
        },
        active_branch="b2",
        open_turn=waiting,
    )


def long_talk(turns: int) -> ConversationTree:
    """Each turn of a single branch with a tree of its own, each third one from evidence of the one before."""
    made: list[QaPair] = []
    for number in range(1, turns + 1):
        last = made[-1] if made else None
        each = turn(number, last, f"第{number}问: what of it?", "An answer of some words. " * 8)
        if number % 3 or last is None:
            each |= {"answered_from": "search", "rag_thread_id": f"r{number}"}
            each["chunks"] = [found_by(each, f"c{number}")]
        else:
            each |= {"answered_from": "history", "chunks": last["chunks"]}
        made.append(each)
    searched = [each["rag_thread_id"] for each in made if each["rag_thread_id"]]
    main: Branch = {**new_branch(MAIN_BRANCH, "main"), "head_number": turns}  # type: ignore[typeddict-item]
    return ConversationTree(
        name="long",
        conversation_id="long",
        title="Long",
        branches=(main,),
        turns=tuple(made),
        trees={thread: search_tree(thread, f"text of {thread} " * 40) for thread in searched},
    )
