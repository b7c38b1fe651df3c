"""The base of chat models that change one thing about the calls of another."""

from __future__ import annotations

from .endpoint import ChatLLM


class ChatWrapper:
    """A chat model that makes its calls through another one and has that one's name."""

    def __init__(self, inner: ChatLLM) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        """Name of the inner model."""
        return self._inner.model
