"""Graphs for LangGraph's server, over the collection JUDGETREE_COLLECTION and the models of the settings."""

import functools
import os

from judgetree import (
    CallGate,
    GeneratedJudge,
    RagContext,
    Retriever,
    build_judge_rag,
    build_naive_rag,
    create_llm,
    load_settings,
    open_index,
)


@functools.cache
def services() -> RagContext:
    """Open models and collection once a process."""
    settings = load_settings()
    llm = create_llm(settings.llm_spec, settings, CallGate(settings.max_concurrency))
    index = open_index(os.environ.get("JUDGETREE_COLLECTION", "standards"), settings)
    retriever = Retriever(index, topk=3, search_type="hybrid")
    return RagContext(reader=llm, retriever=retriever, judge=GeneratedJudge(llm))


def judge():
    """Recursive RAG with a judge."""
    return build_judge_rag(context=services()).as_state_graph()


def naive():
    """Retrieve once and answer."""
    return build_naive_rag(context=services()).as_state_graph()
