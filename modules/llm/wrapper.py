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

    @property
    def fields(self) -> str:
        """The inner model's settings in fingerprints; ``""`` for a model that its name identifies."""
        return str(getattr(self._inner, "fields", ""))


def model_fingerprint(llm: ChatLLM) -> dict[str, str]:
    """Return the name of a model and, of one of LangChain's, class and digest of its settings as ``model_fields``."""
    fields = str(getattr(llm, "fields", ""))
    return {"model": llm.model, **({"model_fields": fields} if fields else {})}
