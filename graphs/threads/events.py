"""Live events of a run, root and sub-runs alike, on LangGraph's custom stream."""

from __future__ import annotations

from langgraph.runtime import Runtime

from .context import RunContext


def emit(runtime: Runtime[RunContext], event: str, *, node: str, **details: object) -> None:
    """Send one event; without a listener it costs next to nothing.

    A sub-run has no stream of its own that anybody reads, so its events go to the root's.
    """
    context = runtime.context
    write = context.emit_to or runtime.stream_writer
    write(
        {
            "event": event,
            "node": node,
            "thread_id": context.thread_id,
            "parent_thread_id": context.parent_thread_id,
            "root_thread_id": context.root_thread_id,
            "depth": context.depth,
            **details,
        }
    )
