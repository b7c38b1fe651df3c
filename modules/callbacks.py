"""The handlers of LangChain's callbacks that hear of calls and searches."""

from __future__ import annotations

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.runnables.config import var_child_runnable_config


def run_callbacks() -> AsyncCallbackManager | None:
    """Return the callbacks of the current run of a graph, tracers included; None outside of one."""
    manager = (var_child_runnable_config.get() or {}).get("callbacks")
    return manager if isinstance(manager, AsyncCallbackManager) else None
