"""The nodes of a turn. A node's name is its function's name, here, in events and in pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from ...modules.context_messages import build_context_messages
from ...modules.errors import SettingsError, ThreadMismatch
from ...modules.evidence import render_evidence, usable_chunks
from ...modules.prompts import is_refusal, reader_messages
from ...modules.prompts_conversation import (
    KNOWLEDGE_SYSTEM,
    AssessmentReply,
    RouteReply,
    SelectionReply,
    SmallTalkReply,
    assess_messages,
    condense_messages,
    digest_messages,
    history_reader_messages,
    render_turns,
    route_messages,
    select_messages,
    small_talk_messages,
    summary_messages,
)
from ...modules.turns import ChunkRef, QaPair, best_refs, merge_refs, rag_thread_of
from ...modules.usage import CallMeter, UsageTotals, total_usage
from ..rag_graph import RagInput
from ..search_tree import SearchTree
from ..state import RagState
from ..tree_nodes import walk_chunks
from .calls import answer_live, ask_json, ask_text
from .context import TurnContext
from .history import in_line, newest_within
from .saving import remember, saved_turn
from .sources import chunks_of
from .state import TurnState

Update = dict[str, object]


async def fold_summary(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Take turns that are too old for a prompt into the running summary; a failed call leaves it to a later turn."""
    context, meter = runtime.context, CallMeter(node="fold_summary")
    context.tell("fold_summary")
    folded = state["to_fold"]
    summary = await ask_text(context, summary_messages(state["summary"], folded), meter=meter)
    if not summary:
        unfolded = newest_within(in_line(*folded, *state["history"]), context.limits.max_tokens // 4)
        return {"history": unfolded, "usage": meter.records}
    return {"summary": summary, "folded": True, "usage": meter.records}


async def direct_answer(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Answer small talk at once; anything else goes on."""
    context, meter = runtime.context, CallMeter(node="direct_answer")
    context.tell("direct_answer")
    reply = await ask_json(context, small_talk_messages(_query(state)), SmallTalkReply, meter=meter)
    update: Update = {"usage": meter.records}
    if reply is None or not reply.small_talk or not reply.reply.strip():
        return update
    if context.stream:
        context.stream.on_text(reply.reply)
    return update | _answer(reply.reply, "small_talk", status="answered")


async def select_turns(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Ask which earlier turns the question leans on, and fetch the chunks that those rest on."""
    context, meter = runtime.context, CallMeter(node="select_turns")
    context.tell("select_turns")
    history = render_turns(state["history"], summary=state["summary"])
    reply = await ask_json(context, select_messages(history, _query(state)), SelectionReply, meter=meter)
    there = {turn["turn_number"] for turn in state["history"]} | ({0} if state["summary"] else set())
    if reply is None:
        return {"selected": None, "usage": meter.records}
    selected = sorted(there.intersection(reply.turns))
    needed = [turn for turn in state["history"] if turn["turn_number"] in selected]
    chunks = await chunks_of(merge_refs(needed), context.rag)
    return {
        "selected": selected,
        "kept_chunks": chunks,
        "passages": render_evidence(chunks),
        "usage": meter.records,
    }


async def digest_evidence(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Shorten passages that would fill a prompt to what they say of the question; a model that fails leaves them."""
    context, meter = runtime.context, CallMeter(node="digest_evidence")
    context.tell("digest_evidence")
    digest = await ask_text(context, digest_messages(state["passages"], _query(state)), meter=meter)
    return {"passages": digest or state["passages"], "usage": meter.records}


async def assess_history(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Ask what the earlier turns give to the question, and how it reads by itself."""
    context, meter = runtime.context, CallMeter(node="assess_history")
    context.tell("assess_history")
    messages = assess_messages(_history(state, context), state["passages"], _query(state))
    reply = await ask_json(context, messages, AssessmentReply, meter=meter)
    if reply is None:
        return {"kept_chunks": [], "usage": meter.records}
    kept = [chunk for number, chunk in enumerate(state["kept_chunks"], start=1) if number in reply.useful]
    standalone = "" if is_refusal(reply.question) else reply.question.strip()
    update: Update = {"kept_chunks": kept, "standalone_query": standalone, "usage": meter.records}
    return update | ({"answered_from": "history"} if reply.answerable else {})


async def answer_from_history(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Answer from earlier turns and their evidence, without a search; a refusal goes on to one."""
    context, meter = runtime.context, CallMeter(node="answer_from_history")
    context.tell("answer_from_history")
    messages = history_reader_messages(_history(state, context), state["passages"], _query(state))
    answer = await answer_live(context, messages, meter=meter)
    update: Update = {"usage": meter.records}
    if is_refusal(answer):
        return update
    refs = {ref["chunk_id"]: ref for ref in merge_refs(_selected(state))}
    kept = [refs[str(chunk.metadata["chunk_id"])] for chunk in state["kept_chunks"]]
    return update | _answer(answer, "history") | {"chunks": kept}


async def condense(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Rewrite the question so that it stands alone; where that fails, it is searched for as it was asked."""
    context, meter = runtime.context, CallMeter(node="condense")
    context.tell("condense")
    standalone = await ask_text(context, condense_messages(_history(state, context), _query(state)), meter=meter)
    usable = standalone if standalone and not is_refusal(standalone) else _query(state)
    return {"standalone_query": usable, "usage": meter.records}


async def web_or_rag(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Ask whether the web is the better place to search; the collection is where the reply does not say so."""
    context, meter = runtime.context, CallMeter(node="web_or_rag")
    context.tell("web_or_rag")
    reply = await ask_json(context, route_messages(_standalone(state)), RouteReply, meter=meter)
    to_web = reply is not None and reply.route == "web"
    return {"answered_from": "web" if to_web else "search", "usage": meter.records}


async def search_web(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Search the web and let the reader answer from what it gives."""
    context, meter = runtime.context, CallMeter(node="search_web")
    context.tell("search_web")
    if context.web is None:
        raise SettingsError("web_or_rag needs a web search: set JUDGETREE_SEARXNG_URL, or give web=….")
    query = _standalone(state)
    found = await context.web.search(query, limit=WEB_RESULTS)
    asked = query if context.options.rephrase_question else _query(state)
    answer = await answer_live(context, reader_messages(asked, render_evidence(found)), meter=meter)
    return _answer(answer, "web") | {"chunks": [_ref_of(chunk.metadata, "") for chunk in found], "usage": meter.records}


async def call_rag(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Ask the stand-alone question on a thread of its own, with the chunks that were kept."""
    context = runtime.context
    context.tell("call_rag")
    thread_id = rag_thread_of(context.conversation_id, state["open_turn"]["turn_id"])
    config: RunnableConfig = {"configurable": {"thread_id": thread_id, "conversation_id": context.conversation_id}}
    try:
        final = await _run_rag(_rag_input(state, context), config, context)
    except ThreadMismatch as error:
        raise ThreadMismatch(f"{error} In a conversation: ask again with regenerate=True, for a new turn.") from error
    answer, status = final["answer"], final["status"]
    nothing_found = context.services.retriever is not None and not final.get("similar_chunks")
    if nothing_found and context.options.response_if_no_docs_found is not None:
        answer, status = context.options.response_if_no_docs_found, "refused"
        if context.stream:
            context.stream.on_text(answer)
    chunks, usage = await _found_by(final, thread_id, context)
    return _answer(answer, "search", status=status) | {
        "chunks": chunks,
        "rag_thread_id": thread_id,
        "rag_usage": usage,
    }


async def answer_from_knowledge(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Answer what the evidence does not from the conversation and general knowledge, and mark it so."""
    context, meter = runtime.context, CallMeter(node="answer_from_knowledge")
    context.tell("answer_from_knowledge")
    messages = build_context_messages(
        system=KNOWLEDGE_SYSTEM,
        question=_standalone(state),
        recent=state["history"],
        summary=state["summary"],
        token_budget=context.limits.max_tokens,
    )
    answer = await answer_live(context, messages, meter=meter)
    return _answer(answer, "knowledge") | {"chunks": [], "usage": meter.records}


async def save_turn(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Save the turn, once however often this runs, then remember it. A memory that fails is made up for later."""
    context = runtime.context
    context.tell("save_turn")
    turn, changed = await saved_turn(state, context)
    await remember(context.memory, context.conversation_id, changed)
    return {"turn": turn}


WEB_RESULTS = 5


def _query(state: TurnState) -> str:
    return state["open_turn"]["query"]


def _standalone(state: TurnState) -> str:
    return state.get("standalone_query") or _query(state)


def _selected(state: TurnState) -> list[QaPair]:
    numbers = state.get("selected") or ()
    return [turn for turn in state["history"] if turn["turn_number"] in numbers]


def _history(state: TurnState, context: TurnContext) -> str:
    """The history for a prompt: the turns that matter, or all where that is not known."""
    turns = state["history"] if state.get("selected") is None else _selected(state)
    if context.options.get_chat_history is not None:
        return context.options.get_chat_history([(turn["query"], turn["answer"]) for turn in turns])
    return render_turns(turns, summary=state["summary"])


def _answer(answer: str, source: str, *, status: str | None = None) -> Update:
    return {
        "answer": answer,
        "answered_from": source,
        "status": status or ("refused" if is_refusal(answer) else "answered"),
    }


def _rag_input(state: TurnState, context: TurnContext) -> RagInput:
    query = _standalone(state)
    given = RagInput(query=query)
    if not context.options.rephrase_question and query != _query(state):
        given["reader_query"] = _query(state)
    if state.get("kept_chunks"):
        given["kept_chunks"] = state["kept_chunks"]
    return given


async def _run_rag(given: RagInput, config: RunnableConfig, context: TurnContext) -> RagState:
    stream = context.stream
    if stream is None:
        return await context.rag.ainvoke(given, config, context=context.services)
    async for event in context.rag.astream(given, config, context=context.services, stream_mode="custom"):
        if event["event"] == "answer_growing":
            stream.on_text(event["answer"])
        elif event["event"] == "thinking_growing":
            stream.on_thinking(event["thinking"])
        else:
            context.tell(event["node"], event)
    snapshot = await context.rag.aget_state(config)
    return cast(RagState, snapshot.values)


async def _found_by(final: RagState, thread_id: str, context: TurnContext) -> tuple[list[ChunkRef], UsageTotals]:
    """What the answer of a search rests on, sub-questions' chunks included, and what the whole search cost."""
    chunks = final.get("similar_chunks", [])
    refs = [_ref_of(chunk.metadata, thread_id) for chunk in usable_chunks(chunks)]
    if not any(chunk.metadata["next_rag_thread_id"] for chunk in chunks):
        return refs, total_usage(final.get("usage", ()))
    tree = await SearchTree.afrom_history(context.rag, thread_id)
    below = [
        _ref_of(chunk.metadata, query.thread_id)
        for query, chunk in walk_chunks(tree.root)
        if query is not tree.root and chunk.score
    ]
    return best_refs([*refs, *below]), tree.usage


def _ref_of(metadata: Mapping[str, Any], thread_id: str) -> ChunkRef:
    return ChunkRef(
        chunk_id=str(metadata["chunk_id"]),
        source=str(metadata.get("source", "")),
        score=metadata.get("score"),
        retrieval_score=metadata.get("retrieval_score"),
        thread_id=thread_id,
    )
