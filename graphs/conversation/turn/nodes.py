"""The nodes of a turn. A node's name is its function's name, here, in events and in pictures."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from ....modules.calls.messages import Message
from ....modules.calls.record import is_declined
from ....modules.calls.tokens import beginning, shortened
from ....modules.calls.usage import CallMeter
from ....modules.config.answer_form import USUAL_FORM, AnswerForm
from ....modules.errors import BudgetSpent, SettingsError, ThreadMismatch
from ....modules.judge.contract import judge_one
from ....modules.judge.insert_block import left_in, report_of, with_block
from ....modules.memory.kept_evidence import ranked_refs, within_tokens
from ....modules.memory.prompts import (
    AssessmentReply,
    RouteReply,
    SelectionReply,
    SmallTalkReply,
    route_messages,
    small_talk_messages,
)
from ....modules.memory.rewrites import Rewrite, read_rewrite
from ....modules.memory.turns import QaPair, merge_refs, rag_thread_of
from ....modules.reader.answer_forms import refuses
from ....modules.reader.evidence import render_evidence, split_evidence
from ....modules.reader.prompts import reader_messages
from ....modules.reader.refusals import is_refusal
from ....modules.reader.strategies import digested
from ...rag.run_start import RagInput
from ...threads.amounts import room_for_evidence
from ...threads.interrupts import raise_interrupts
from .budget import before_search, count_search
from .calls import answer_live, ask_json, ask_text
from .context import ANSWER, TurnContext
from .history import chunks_of, newest_within, path_order
from .prompts import (
    assessment_prompt,
    condensation_prompt,
    knowledge_prompt,
    reader_query,
    selection_prompt,
    shown_passages,
    shown_query,
    summary_prompt,
)
from .saving import remember, save_answered
from .search import found_by, ref_of, run_search
from .state import TurnState

Update = dict[str, object]

logger = logging.getLogger(__name__)


async def fold_summary(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Fold turns that are too old for a prompt into the summary; after a failed call a later turn does it."""
    context = runtime.context
    meter = context.start("fold_summary")
    limit = context.limits.max_summary_tokens
    reply = await ask_text(context, summary_prompt(state, context), meter=meter, max_tokens=limit)
    summary = beginning(reply.written, limit) if reply else ""
    if not summary:
        unfolded = newest_within(path_order(*state["to_fold"], *state["history"]), context.limits.max_tokens // 4)
        return {"history": unfolded, "usage": meter.records}
    return {"summary": summary, "folded": True, "usage": meter.records}


async def direct_answer(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Answer small talk at once; other messages get no answer here."""
    context = runtime.context
    meter = context.start("direct_answer")
    messages = small_talk_messages(shown_query(state, context), context.services.prompts)
    reply = await ask_json(context.chat, messages, SmallTalkReply, meter=meter)
    update: Update = {"usage": meter.records}
    if reply is None or not reply.small_talk or not reply.reply.strip():
        return update
    context.emit_answer(reply.reply)
    return update | _answer(reply.reply, "small_talk", status="answered")


async def select_turns(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Ask which earlier turns the question needs, and read the best chunks that those turns rest on."""
    context = runtime.context
    meter = context.start("select_turns")
    reply = await ask_json(context.condensing, selection_prompt(state, context), SelectionReply, meter=meter)
    known = {turn["turn_number"] for turn in state["history"]} | ({0} if state["summary"] else set())
    if reply is None:
        return {"selected": None, "usage": meter.records}
    selected = sorted(known.intersection(reply.turns))
    needed = _of_collection(state, selected)
    refs = ranked_refs(needed, at=state["open_turn"]["turn_number"])[: context.limits.max_kept_chunks]
    chunks = within_tokens(await chunks_of(refs, context.rag), context.limits.max_evidence_tokens)
    return {
        "selected": selected,
        "kept_chunks": chunks,
        "passages": render_evidence(chunks),
        "usage": meter.records,
    }


async def digest_evidence(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Digest passages that would fill a prompt to their statements on the question; cut them if the model fails."""
    context = runtime.context
    meter = context.start("digest_evidence")
    limits = context.limits

    async def ask(messages: list[Message]) -> str | None:
        reply = await ask_text(context, messages, meter=meter, max_tokens=limits.max_summary_tokens)
        return reply.written or None if reply else None

    passages = split_evidence(state["passages"], state["kept_chunks"])
    digest = await digested(
        passages,
        _query(state),
        ask,
        max_prompt_tokens=limits.max_tokens,
        max_tokens=limits.max_tokens // 2,
        prompts=context.services.prompts,
    )
    return {"passages": digest, "usage": meter.records}


async def assess_history(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Ask for an answer from the earlier turns, and for the stand-alone question."""
    context = runtime.context
    meter = context.start("assess_history")
    reply = await ask_json(context.condensing, assessment_prompt(state, context), AssessmentReply, meter=meter)
    if reply is None:
        return {"kept_chunks": [], "usage": meter.records}
    kept = [chunk for number, chunk in enumerate(state["kept_chunks"], start=1) if number in reply.useful]
    rewrite = read_rewrite(reply.question, _query(state), max_tokens=context.limits.max_rewrite_tokens)
    return {
        "kept_chunks": kept,
        "standalone_query": rewrite.text,
        "rewrite_problem": rewrite.problem,
        "usage": meter.records,
        **({} if is_refusal(reply.answer) else {"proposed_answer": reply.answer.strip()}),
    }


async def answer_from_history(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Give the proposed answer if the judge confirms its evidence; otherwise the turn continues with a search.

    With ``answer_from_history="trust"`` the judge is not called.
    """
    context = runtime.context
    meter = context.start("answer_from_history")
    chunks, answer = state["kept_chunks"], state["proposed_answer"]
    if context.options.answer_from_history != "trust":
        confirmed = bool(chunks) and await _is_confirmed(_standalone(state), chunks, context, meter)
        if not confirmed:
            return {"usage": meter.records}
    context.emit_answer(answer)
    refs = {ref["chunk_id"]: ref for ref in merge_refs(_of_collection(state, state.get("selected") or ()))}
    kept = [refs[str(chunk.metadata["chunk_id"])] for chunk in chunks]
    return {"usage": meter.records, "chunks": kept} | _answer(answer, "history")


async def _is_confirmed(query: str, chunks: list[Document], context: TurnContext, meter: CallMeter) -> bool:
    """Return whether the judge gives score 2 to the chunks, joined into one passage."""
    text = shortened("\n\n".join(chunk.page_content for chunk in chunks), context.limits.max_tokens // 2)
    passage = Document(page_content=text, metadata=chunks[0].metadata)
    try:
        verdict = await judge_one(context.judge, query, passage, meter=meter, expand=False)
    except BudgetSpent:
        return False
    return verdict.score == 2


async def condense(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Rewrite the question so that it stands alone; if that fails, it is searched for in the user's words."""
    context = runtime.context
    meter = context.start("condense")
    limit = context.limits.max_rewrite_tokens
    messages = condensation_prompt(state, context)
    reply = await ask_text(context, messages, meter=meter, max_tokens=limit, llm=context.condenser)
    if reply is None:
        rewrite = Rewrite(text="", problem="the model failed, or the limits of the question left no room")
    else:
        is_cut = reply.is_cut_off
        rewrite = read_rewrite(reply.written, _query(state), max_tokens=limit, cut_off=is_cut)
    return {
        "standalone_query": rewrite.text or _query(state),
        "rewrite_problem": rewrite.problem,
        "usage": meter.records,
    }


async def web_or_rag(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Let the model choose between web and collection; without a usable reply it is the collection."""
    context = runtime.context
    meter = context.start("web_or_rag")
    query = shortened(_standalone(state), context.limits.max_tokens // 2)
    reply = await ask_json(context.chat, route_messages(query, context.services.prompts), RouteReply, meter=meter)
    to_web = reply is not None and reply.route == "web"
    return {"answered_from": "web" if to_web else "search", "usage": meter.records}


async def search_web(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Search the web and let the reader answer from the hits."""
    context = runtime.context
    meter = context.start("search_web", answers=True)
    unheld = replace(meter, held_by="")  # the held call is for the answer
    if context.web is None:
        raise SettingsError("web_or_rag needs a web search: set JUDGETREE_SEARXNG_URL, or give web=….")
    query = _standalone(state)
    hits = await context.web.search(query, limit=WEB_RESULTS)
    if (filtering := context.services.insert_block) is not None:
        hits = [with_block(*each) for each in zip(hits, await filtering.blocks(query, hits, meter=unheld), strict=True)]
    found = left_in(hits)
    room = None if context.budget is None else room_for_evidence(query, ANSWER, context.budget, context.services)
    most = context.limits.max_tokens // 2
    evidence = shown_passages(render_evidence(found), most if room is None else min(most, room))
    messages = reader_messages(reader_query(state, context), evidence, context.services.prompts)
    answer = await answer_live(context, messages, meter=meter)
    refs = [ref_of(chunk.metadata, "") for chunk in found]
    return _answer(answer, "web", meter=meter, form=context.services.answer_form) | {
        "chunks": refs,
        "insert_block": report_of(hits),
        "usage": meter.records,
    }


async def call_rag(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Search for the stand-alone question on a thread of its own, with the kept chunks."""
    context = runtime.context
    context.emit("call_rag")
    thread_id = rag_thread_of(context.conversation_id, state["open_turn"]["turn_id"])
    earlier = [turn["rag_thread_id"] for turn in state["history"] if turn["rag_thread_id"]]
    config: RunnableConfig = {
        "configurable": {
            "thread_id": thread_id,
            "conversation_id": context.conversation_id,
            "earlier_threads": earlier,
        }
    }
    try:
        services = replace(context.services, before=before_search(context))
        final = await run_search(_rag_input(state, context), config, replace(context, services=services))
    except ThreadMismatch as error:
        raise ThreadMismatch(f"{error} In a conversation: ask again with regenerate=True, for a new turn.") from error
    raise_interrupts(final)
    answer, status = final["answer"], final["status"]
    nothing_found = context.services.retriever is not None and not final.get("similar_chunks")
    if nothing_found and context.options.response_if_no_docs_found is not None:
        answer, status = context.options.response_if_no_docs_found, "refused"
        context.emit_answer(answer)
    found = await found_by(final, thread_id, context)
    if context.budget is not None:
        count_search(context.budget, context.trees[thread_id])
    return _answer(answer, "search", status=status) | {"rag_thread_id": thread_id} | found


async def answer_from_knowledge(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Answer from the conversation and general knowledge, and mark the answer accordingly.

    The refusal stays where the limits of the question leave no room for it.
    """
    context = runtime.context
    meter = context.start("answer_from_knowledge")
    try:
        answer = await answer_live(context, knowledge_prompt(state, context), meter=meter)
    except BudgetSpent as spent:
        logger.warning("the refusal stays (%s)", spent)
        context.emit_answer(state["answer"])
        return {"usage": meter.records}
    form = context.services.answer_form
    return _answer(answer, "knowledge", meter=meter, form=form) | {"chunks": [], "usage": meter.records}


async def save_turn(state: TurnState, runtime: Runtime[TurnContext]) -> Update:
    """Save the turn, once however often this runs, and add it to the memory; if that fails, the next turn adds it."""
    context = runtime.context
    context.emit("save_turn")
    turn, changed = await save_answered(state, context)
    await remember(context.memory, context.conversation_id, changed)
    return {"turn": turn}


WEB_RESULTS = 5


def _query(state: TurnState) -> str:
    return state["open_turn"]["query"]


def _standalone(state: TurnState) -> str:
    return state.get("standalone_query") or _query(state)


def _of_collection(state: TurnState, numbers: Collection[int]) -> list[QaPair]:
    """Return the turns of these numbers that searched the collection of this turn; all if this turn searches none."""
    own = state["open_turn"]["collection"]
    turns = (turn for turn in state["history"] if turn["turn_number"] in numbers)
    return [turn for turn in turns if not own or turn["collection"] == own]


def _answer(
    answer: str,
    source: str,
    *,
    status: str | None = None,
    meter: CallMeter | None = None,
    form: AnswerForm = USUAL_FORM,
) -> Update:
    is_refused = refuses(answer, form) or (meter is not None and is_declined(answer, meter.records))
    return {
        "answer": answer,
        "answered_from": source,
        "status": status or ("refused" if is_refused else "answered"),
    }


def _rag_input(state: TurnState, context: TurnContext) -> RagInput:
    query = _standalone(state)
    given = RagInput(query=query)
    if (asked := reader_query(state, context)) != query:
        given["reader_query"] = asked
    if state.get("kept_chunks"):
        given["kept_chunks"] = state["kept_chunks"]
    return given
