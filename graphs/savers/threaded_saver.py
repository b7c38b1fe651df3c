"""Synchronous savers of LangGraph for async graphs, each in a thread of its own."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

T = TypeVar("T")


class ThreadedSaver(BaseCheckpointSaver[str]):
    """The async methods of a synchronous saver, with one trip to its thread for each operation."""

    def __init__(self, inner: BaseCheckpointSaver[str]) -> None:
        """Use ``inner`` from now on, in a new thread alone."""
        super().__init__(serde=inner.serde)
        self.inner = inner
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints")

    @property
    def config_specs(self) -> list[Any]:
        """The inner saver's."""
        return self.inner.config_specs

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the inner saver's next version of a channel."""
        return self.inner.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """Return a copy that reads back further types, on the same thread."""
        clone = copy.copy(self)
        clone.inner = self.inner.with_allowlist(extra_allowlist)
        clone.serde = clone.inner.serde
        return clone

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint."""
        return await self.in_thread(partial(self.inner.get_tuple, config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints; all are read before the first is returned."""
        found = partial(self.inner.list, config, filter=filter, before=before, limit=limit)
        for each in await self.in_thread(lambda: list(found())):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; returns its config."""
        return await self.in_thread(partial(self.inner.put, config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task on top of a checkpoint."""
        await self.in_thread(partial(self.inner.put_writes, config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread."""
        await self.in_thread(partial(self.inner.delete_thread, thread_id))

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run work in the saver's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def end_thread(self) -> None:
        """End the thread after the work that it was given."""
        self._thread.shutdown(wait=False)
