"""The graph of one turn: from a question and its history to a saved answer."""

from __future__ import annotations

from typing import Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from ....modules.memory.turns import count_tokens
from ...threads.checkpoints import Saver
from . import nodes
from .context import TurnContext
from .state import TurnState

CompiledTurn = CompiledStateGraph[TurnState, TurnContext, TurnState, TurnState]

Search = Literal["web_or_rag", "call_rag"]
Understanding = Literal["select_turns", "condense", "web_or_rag", "call_rag"]


def build_turn_graph(saver: Saver) -> CompiledTurn:
    """Build the graph of a turn, to be run on the turn's thread with ``durability="sync"``.

    Its initial state comes from ``history.load_history``.

    ::

        question and history ─ no turns before ─────────────────────────────> call_rag ─> save_turn
              └ fold_summary, if due ─> select_turns ─ none matters ─────────────^  ^
                                            │ unknown ─> condense ──────────────────┤
                                            └ some ─> assess_history ─ no ──────────┤
                                               │ digest_evidence ─^  └ yes ─> answer_from_history ─> save_turn
                                               └ too long ─^                        └ not confirmed ─> call_rag

    With ``answer_from_history="never"`` every question with history goes to ``condense`` at once. The options may add
    ``direct_answer`` before the first step, ``web_or_rag`` before ``call_rag`` and ``answer_from_knowledge`` after it.
    """
    builder = StateGraph(TurnState, context_schema=TurnContext)
    for node in (
        nodes.fold_summary,
        nodes.direct_answer,
        nodes.select_turns,
        nodes.digest_evidence,
        nodes.assess_history,
        nodes.answer_from_history,
        nodes.condense,
        nodes.web_or_rag,
        nodes.search_web,
        nodes.call_rag,
        nodes.answer_from_knowledge,
        nodes.save_turn,
    ):
        builder.add_node(node.__name__, node)
    search = ["web_or_rag", "call_rag"]
    understanding = ["select_turns", "condense", *search]
    builder.add_conditional_edges(START, to_first_step, ["fold_summary", "direct_answer", *understanding])
    builder.add_conditional_edges("fold_summary", to_direct_answer, ["direct_answer", *understanding])
    builder.add_conditional_edges("direct_answer", after_direct_answer, ["save_turn", *understanding])
    builder.add_conditional_edges(
        "select_turns", after_selection, ["condense", "digest_evidence", "assess_history", *search]
    )
    builder.add_edge("digest_evidence", "assess_history")
    builder.add_conditional_edges("assess_history", after_assessment, ["answer_from_history", "condense", *search])
    builder.add_conditional_edges("answer_from_history", after_answer, ["save_turn", "condense", *search])
    builder.add_conditional_edges("condense", to_search, search)
    builder.add_conditional_edges("web_or_rag", after_route, ["search_web", "call_rag"])
    builder.add_conditional_edges("search_web", after_search, ["answer_from_knowledge", "save_turn"])
    builder.add_conditional_edges("call_rag", after_search, ["answer_from_knowledge", "save_turn"])
    builder.add_edge("answer_from_knowledge", "save_turn")
    builder.add_edge("save_turn", END)
    return builder.compile(checkpointer=saver, name="turn")


async def to_first_step(
    state: TurnState, runtime: Runtime[TurnContext]
) -> Literal["fold_summary", "direct_answer"] | Understanding:
    """Route to the summary if turns are due to be folded."""
    return "fold_summary" if state["to_fold"] else await to_direct_answer(state, runtime)


async def to_direct_answer(state: TurnState, runtime: Runtime[TurnContext]) -> Literal["direct_answer"] | Understanding:
    """Route to the test for small talk if the options ask for it, and the answer may have any form."""
    is_tested = runtime.context.options.direct_answer and not runtime.context.services.answer_form.needs_reader
    return "direct_answer" if is_tested else await _to_understanding(state, runtime)


async def after_direct_answer(state: TurnState, runtime: Runtime[TurnContext]) -> Literal["save_turn"] | Understanding:
    """Route to the end after an answer to small talk."""
    return "save_turn" if "answer" in state else await _to_understanding(state, runtime)


async def after_selection(
    state: TurnState, runtime: Runtime[TurnContext]
) -> Literal["condense", "digest_evidence", "assess_history"] | Search:
    """Route by the selected turns: none is a search, unknown is condensed, some are assessed.

    Evidence of more than half a prompt is digested first.
    """
    if state["selected"] is None:
        return "condense"
    if not state["selected"]:
        return await to_search(state, runtime)
    too_long = count_tokens(state["passages"]) > runtime.context.limits.max_tokens // 2
    return "digest_evidence" if too_long else "assess_history"


async def after_assessment(
    state: TurnState, runtime: Runtime[TurnContext]
) -> Literal["answer_from_history", "condense"] | Search:
    """Route to an answer from earlier turns if the assessment proposes one, and it may have any form."""
    is_answered = state.get("proposed_answer") and not runtime.context.services.answer_form.needs_reader
    return "answer_from_history" if is_answered else await _to_condensed_search(state, runtime)


async def after_answer(state: TurnState, runtime: Runtime[TurnContext]) -> Literal["save_turn", "condense"] | Search:
    """Route to the end, or to a search if the judge did not confirm the answer."""
    return "save_turn" if "answer" in state else await _to_condensed_search(state, runtime)


async def to_search(state: TurnState, runtime: Runtime[TurnContext]) -> Search:
    """Route to the choice between web and collection if the options ask for it."""
    return "web_or_rag" if runtime.context.options.web_or_rag else "call_rag"


async def after_route(state: TurnState) -> Literal["search_web", "call_rag"]:
    """Route to the web or to the collection."""
    return "search_web" if state["answered_from"] == "web" else "call_rag"


async def after_search(
    state: TurnState, runtime: Runtime[TurnContext]
) -> Literal["answer_from_knowledge", "save_turn"]:
    """Route to general knowledge after a refusal, if the options ask for it."""
    needs_knowledge = runtime.context.options.answer_without_evidence and state["status"] == "refused"
    return "answer_from_knowledge" if needs_knowledge else "save_turn"


async def _to_understanding(state: TurnState, runtime: Runtime[TurnContext]) -> Understanding:
    if not (state["history"] or state["summary"]):
        return await to_search(state, runtime)
    return "condense" if runtime.context.options.answer_from_history == "never" else "select_turns"


async def _to_condensed_search(state: TurnState, runtime: Runtime[TurnContext]) -> Literal["condense"] | Search:
    """Route to a search; the question is condensed first unless an assessment has rewritten it already."""
    return await to_search(state, runtime) if state.get("standalone_query") else "condense"
