"""Chat models of one's own, by import path, plug-in or object, where a spec names a model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.language_models import BaseChatModel, BaseLLM

from ..calls.completion import Completion
from ..calls.growing_text import Listeners
from ..calls.journaled import JournaledLLM
from ..calls.messages import CallOptions, Message
from ..calls.record import CallRecord
from ..calls.usage import CallMeter
from ..digests import canonical_json
from ..errors import ModelCallError, SettingsError
from ..parts import Part, find_part, instantiate, plug_ins, registered_object, result_of_coroutine, wrap_errors
from ..settings import Settings
from ..storage.texts import storable
from .call_gate import CallGate
from .contract import ChatLLM, ChatWrapper
from .langchain_chat import LangChainChat

_COUNTED = ("prompt_tokens", "completion_tokens", "seconds", "attempts")
_SCHEMES = ("openai", "dashscope", "local", "completion", "http", "https")


class OwnLLM(ChatWrapper, JournaledLLM):
    """A chat model of one's own, whose calls are journaled: none is paid twice after a kill."""

    def __init__(self, inner: ChatLLM, part: Part, gate: CallGate) -> None:
        """``part`` has its name and the digest of its source, ``gate`` caps its simultaneous calls."""
        super().__init__(inner)
        self._part = part
        self._gate = gate

    @property
    def fields(self) -> str:
        """Name, source, and the model's own ``fields`` or ``fingerprint()``, for fingerprints."""
        return " ".join(filter(None, (self._part.name, self._part.source, super().fields, self._fingerprint())))

    @property
    def endpoint(self) -> str:
        """Name in caches; it changes with the model's version."""
        return f"own:{self.fields}"

    def _fingerprint(self) -> str:
        fingerprint = getattr(self._inner, "fingerprint", None)
        return canonical_json(fingerprint()) if callable(fingerprint) else ""

    async def _call(
        self, messages: Sequence[Message], meter: CallMeter, options: CallOptions, listeners: Listeners
    ) -> Completion:
        async with self._gate.slot():
            await meter.about_to_send()
            noted = CallMeter(node=meter.node, chunk_id=meter.chunk_id, payer=None)
            started, failed = time.perf_counter(), ""
            try:
                with wrap_errors(f"Model {self._part.name!r}", ModelCallError):
                    replying = self._inner.complete(messages, meter=noted, options=options, **listeners.given)
                    given = await result_of_coroutine(replying, "complete")
                    return _checked(given)
            except Exception as error:
                failed = str(error)
                raise
            finally:
                if not noted.records:
                    noted.record(kind="chat", model=self.model, started=started, error=failed[:300])
                meter.records.append(_as_one(noted.records))


def _checked(completion: object) -> Completion:
    """Return the completion with texts that can be saved.

    Raises:
        TypeError: It is none, or one without texts.
    """
    if not isinstance(completion, Completion):
        raise TypeError(f"complete returned {completion!r:.80}, which is no Completion")
    if not isinstance(completion.text, str) or not isinstance(completion.thinking, str):
        raise TypeError("complete returned a Completion whose text or thinking is no text")
    return replace(completion, text=storable(completion.text), thinking=storable(completion.thinking))


def _as_one(records: Sequence[CallRecord]) -> CallRecord:
    """Return the requests that a model made for one call as its attempts, since all of them are paid for."""
    together = {name: sum(each[name] for each in records) for name in _COUNTED}  # type: ignore[literal-required]
    return CallRecord(**{**records[-1], **together})  # type: ignore[typeddict-item]


def is_own(spec: str) -> bool:
    """Whether a spec names a model of one's own: ``module:name``, a plug-in, or an object that was given."""
    scheme, colon, name = spec.partition(":")
    is_path = bool(colon and name) and scheme not in _SCHEMES and not set("/#") & set(spec)
    return registered_object(spec) is not None or is_path or spec in plug_ins("llm")


def find_own_llm(spec: str, *, forms: str) -> Part:
    """Import a model of one's own, or what makes it. Of an object of LangChain's packages the source is left out.

    Raises:
        SettingsError: It cannot be imported; ``forms`` are the specs that the message allows.
    """
    try:
        part = find_part("llm", spec)
    except SettingsError as error:
        raise SettingsError(f"Unknown model {spec!r}: {error} Allowed: {forms}; or module:name of your own.") from error
    is_library = isinstance(part.value, BaseChatModel | BaseLLM) and type(part.value).__module__.startswith("langchain")
    return replace(part, source="") if is_library else part


def create_own_llm(spec: str, settings: Settings, gate: CallGate, *, forms: str) -> OwnLLM | LangChainChat:
    """Make a model of one's own: a ``ChatLLM``, a model of LangChain, or a class or function that makes one.

    The latter may take ``settings``. ``forms`` are the specs that messages allow.

    Raises:
        SettingsError: It cannot be imported or made, is no model, or is one of LangChain beside a temperature.
    """
    part = find_own_llm(spec, forms=forms)
    llm = instantiate(part, settings=settings)
    if isinstance(llm, BaseChatModel | BaseLLM):
        if settings.temperature:
            raise SettingsError(
                f"The model {spec!r} is one of LangChain, which keeps its own temperature: set it where it is made, "
                "and leave out temperature here (JUDGETREE_TEMPERATURE)."
            )
        return LangChainChat(llm, version=part.source, gate=gate)
    if not callable(getattr(llm, "complete", None)) or not hasattr(llm, "model"):
        raise SettingsError(f"{part.name!r} gives {llm!r:.100}. Give a ChatLLM, or a model of LangChain.")
    return OwnLLM(llm, part, gate)  # type: ignore[arg-type]
