"""Runs inside the node of another graph: their threads, their share of its stream, and answers that come through it.

LangGraph hands these on in the ``configurable`` of a node's config, under keys that have no public names; this is the
only file that uses them.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_RESUME_MAP,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_SCRATCHPAD,
    CONFIG_KEY_STREAM,
    CONFIG_KEY_TASK_ID,
    NS_SEP,
)
from langgraph.config import get_config
from langgraph.pregel.protocol import StreamProtocol
from langgraph.runtime import Runtime
from langgraph.types import StateSnapshot

from ..threads.context import Compiled
from ..threads.interrupts import Answers
from ..threads.state import RagState
from .run_start import Given, RagInput

Outer = Mapping[str, Any]
"""The ``configurable`` of the node that a run is in."""

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-000000000001")


def outer_of(config: RunnableConfig) -> Outer | None:
    """Return the node that a config is from; None outside of nodes."""
    configurable = config.get("configurable", {})
    return configurable if CONFIG_KEY_TASK_ID in configurable else None


def inner_config(config: RunnableConfig, outer: Outer) -> RunnableConfig:
    """Return the config of a run of its own, on a thread that is always the same for the same task of the node."""
    place = [str(outer.get("thread_id", "")), str(outer[CONFIG_KEY_CHECKPOINT_NS])]
    own = {key: value for key, value in outer.items() if not key.startswith(("__pregel_", "checkpoint_"))}
    thread_id = str(uuid.uuid5(_NAMESPACE, NS_SEP.join(place)))
    return {**config, "configurable": {**own, "thread_id": thread_id, **forward_stream(outer)}}


def forward_stream(outer: Outer) -> dict[str, Any]:
    """Return the entries of a config by which a run's items reach the stream of ``subgraphs=True``; empty without it.

    The items are under the namespace of the node.
    """
    stream = outer.get(CONFIG_KEY_STREAM)
    if stream is None:
        return {}
    above = tuple(str(outer[CONFIG_KEY_CHECKPOINT_NS]).split(NS_SEP))
    share = StreamProtocol(lambda item: stream(((*above, *item[0]), *item[1:])), stream.modes)
    return {CONFIG_KEY_STREAM: share, CONFIG_KEY_RUNTIME: outer[CONFIG_KEY_RUNTIME]}


def with_context(config: RunnableConfig, context: object) -> RunnableConfig:
    """Return a config by which routes get a context from ``update_state``, which makes them no runtime."""
    return {**config, "configurable": {**config.get("configurable", {}), CONFIG_KEY_RUNTIME: Runtime(context=context)}}


def forward_own_stream() -> dict[str, Any]:
    """Return the ``forward_stream`` for a run inside the current node."""
    return forward_stream(get_config()["configurable"])


def outer_answers(outer: Outer, waiting: StateSnapshot) -> Answers:
    """Return the answers to a run's interrupts that the outer graph was resumed with."""
    ids = [each.id for each in waiting.interrupts]
    if by_id := outer.get(CONFIG_KEY_RESUME_MAP):
        return {key: by_id[key] for key in ids if key in by_id}
    answer = outer[CONFIG_KEY_SCRATCHPAD].get_null_resume(True) if len(ids) == 1 else None
    return {} if answer is None else {ids[0]: answer}


def inner_input(given: Given, graph: Compiled) -> Given:
    """Return the part of the outer state that is input of the graph; results of an earlier run are not."""
    if not isinstance(given, Mapping):
        return given
    wanted = RagInput.__annotations__.keys() | (graph.channels.keys() - RagState.__annotations__.keys())
    return {key: value for key, value in given.items() if key in wanted}  # type: ignore[return-value]
