"""LangGraph's saver in memory, with checkpoints in the order in which they were saved."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from .places import config_of

_Key = tuple[str, str, str]
"""Thread, namespace and id of a checkpoint."""


class SavedOrderMemorySaver(InMemorySaver):
    """A saver in memory whose newest checkpoint is the one that was saved last, whatever the clock says."""

    def __init__(self, *, serde: SerializerProtocol) -> None:
        super().__init__(serde=serde)
        self._count = itertools.count()
        self._places: dict[_Key, int] = {}

    async def alast_saved(self, prefix: str) -> Sequence[str]:
        """Return the threads whose ids begin with a prefix, the last saved first."""
        keys = (key for key in self._last_saved_first(self.storage) if key[0].startswith(prefix) and not key[1])
        return list(dict.fromkeys(thread_id for thread_id, _, _ in keys))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint; without an id in the config, the one that was saved last."""
        if get_checkpoint_id(config):
            return super().get_tuple(config)
        thread_id, namespace = config["configurable"]["thread_id"], config["configurable"].get("checkpoint_ns", "")
        newest = next((key for key in self._last_saved_first([thread_id]) if key[1] == namespace), None)
        return None if newest is None else super().get_tuple(config_of(*newest))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the last saved first; ``before`` leaves out that one and all that were saved after it."""
        wanted = {} if config is None else config["configurable"]
        thread_id, namespace = wanted.get("thread_id"), wanted.get("checkpoint_ns")
        checkpoint_id = None if config is None else get_checkpoint_id(config)
        found = (
            key
            for key in self._last_saved_first(self.storage if thread_id is None else [thread_id])
            if namespace in (None, key[1]) and checkpoint_id in (None, key[2]) and self._has(key, filter or {})
        )
        if before is not None:
            bound = self._place_of(get_checkpoint_id(before) or "", before["configurable"].get("thread_id", thread_id))
            found = (key for key in found if (key[2] < bound if isinstance(bound, str) else self._places[key] < bound))
        for key in list(itertools.islice(found, limit)):  # a thread may be deleted while a caller looks at the first
            if (saved := super().get_tuple(config_of(*key))) is not None:
                yield saved

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; returns its config."""
        saved = super().put(config, checkpoint, metadata, new_versions)
        place = saved["configurable"]
        key = place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"]
        self._places.setdefault(key, next(self._count))
        return saved

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread."""
        for key in list(self._last_saved_first([thread_id])):
            del self._places[key]
        super().delete_thread(thread_id)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what the ancestors of a checkpoint wrote; without an id in the config, of the one saved last."""
        saved = self.get_tuple(config)
        return super().get_delta_channel_history(config=saved.config if saved else config, channels=channels)

    def _last_saved_first(self, thread_ids: Iterable[str]) -> Sequence[_Key]:
        keys = [
            (thread_id, namespace, checkpoint_id)
            for thread_id in thread_ids
            for namespace, saved in self.storage.get(thread_id, {}).items()
            for checkpoint_id in saved
        ]
        return sorted(keys, key=self._places.__getitem__, reverse=True)

    def _has(self, key: _Key, wanted: Mapping[str, Any]) -> bool:
        """Whether a checkpoint's metadata have these values."""
        thread_id, namespace, checkpoint_id = key
        if not wanted:
            return True
        metadata = self.serde.loads_typed(self.storage[thread_id][namespace][checkpoint_id][1])
        return all(metadata.get(name) == value for name, value in wanted.items())

    def _place_of(self, checkpoint_id: str, thread_id: str | None) -> int | str:
        """Return the place of a checkpoint in any namespace; its id if it is not saved."""
        keys = self._last_saved_first(self.storage if thread_id is None else [thread_id])
        return next((self._places[key] for key in keys if key[2] == checkpoint_id), checkpoint_id)
