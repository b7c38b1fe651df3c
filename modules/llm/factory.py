"""Chat models by their specs in the settings."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field

from ..addresses import LOCAL_ENDPOINT, OPENAI_BASE_URL, Address, endpoint_name
from ..background_loop import BackgroundLoop, background_loop
from ..errors import SettingsError
from ..network.keys import sendable_key
from ..progress import StageProgress
from ..settings import Settings, without_secrets
from .cache import CacheableLLM
from .call_gate import CallGate
from .own import create_own_llm, find_own_llm, is_own
from .rate_limit import Admissions, RateLimit, SharedRateLimit

DASHSCOPE_BASE_URL = "https://dashscope.aliyuncs.com/compatible-mode/v1"
SPEC_FORMS = (
    "openai:MODEL, dashscope:MODEL, local: (or local:/path/to/model.gguf), URL#MODEL; completion: before one of them "
    "for a model that completes texts"
)
_COMPLETION = "completion:"
LOCAL_CALLS_AT_ONCE = 1
"""The embedded model serves one call at a time; others would wait in it with their time-out running."""
NO_KEY = "no-key"
"""Placeholder for endpoints without a key, since the client requires one."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The address, name and key of a model. Its secrets do not show in ``repr``."""

    base_url: Address | None
    """None for OpenAI's own address."""
    model: str
    api_key: str = field(repr=False)

    def secrets(self) -> tuple[str, ...]:
        """Return keys and passwords, for ``redaction.starred``."""
        key = () if self.api_key == NO_KEY else (self.api_key,)
        return key + (self.base_url.secrets() if self.base_url is not None else ())


def is_local(spec: str) -> bool:
    """Return whether a spec names a model that runs in this process."""
    return spec.removeprefix(_COMPLETION).startswith("local:")


def without_completion(spec: str) -> str:
    """Return a spec without the ``completion:`` that it may begin with."""
    return Address(Address(spec).revealed().removeprefix(_COMPLETION)) if spec.startswith(_COMPLETION) else spec


def resolve_endpoint(spec: str, settings: Settings) -> Endpoint:
    """Return the endpoint of a spec other than ``local:``, with its key from the settings or the environment.

    Raises:
        SettingsError: The spec has another form, names no model, or its endpoint's key is missing or cannot be sent.
    """
    key = sendable_key(settings.llm_api_key.get_secret_value(), "JUDGETREE_LLM_API_KEY")
    scheme, _, model = spec.partition(":")
    if spec.startswith(("http://", "https://")):
        address = Address(spec)
        # Never OPENAI_API_KEY here: a key must not travel to whatever host a spec happens to name.
        endpoint = Endpoint(base_url=address.endpoint, model=address.model, api_key=key or NO_KEY)
    elif scheme == "openai":
        own_url = settings.llm_base_url or Address(os.environ.get("OPENAI_BASE_URL", "")) or None
        key = key or _key_in("OPENAI_API_KEY") or (NO_KEY if own_url else "")
        endpoint = Endpoint(base_url=own_url, model=model, api_key=_required(key, spec, "OPENAI_API_KEY"))
    elif scheme == "dashscope":
        key = _required(key or _key_in("DASHSCOPE_API_KEY"), spec, "DASHSCOPE_API_KEY")
        base_url = settings.llm_base_url or Address(DASHSCOPE_BASE_URL)
        endpoint = Endpoint(base_url=base_url, model=model, api_key=key)
    else:
        raise SettingsError(f"Unknown model {_shown(spec)!r}. Allowed: {SPEC_FORMS}. Set JUDGETREE_LLM.")
    if not endpoint.model:
        raise SettingsError(f"{_shown(spec)!r} names no model. Allowed: {SPEC_FORMS}.")
    return endpoint


def _key_in(variable: str) -> str:
    return sendable_key(os.environ.get(variable, ""), variable)


def _shown(spec: str) -> str:
    return without_secrets(Address(spec))


def _required(key: str, spec: str, variable: str) -> str:
    if not key:
        raise SettingsError(f"The model {_shown(spec)!r} needs a key: set {variable} or JUDGETREE_LLM_API_KEY.")
    return key


def create_llm(
    spec: str,
    settings: Settings,
    gate: CallGate,
    *,
    admissions: Admissions | None = None,
    on_progress: StageProgress | None = None,
) -> CacheableLLM:
    """Return the chat model that ``spec`` names, with retries, rate limits and the shared cap on calls.

    One of one's own, ``module:name`` or a plug-in, keeps its own retries and rate limits (``create_own_llm``).
    ``completion:`` before any other spec asks at ``/completions``, with the messages as one prompt (``one_prompt``).
    ``local:`` joins the model's file at first use and starts the embedded server, which takes seconds, the first time
    minutes; ``on_progress`` receives (done, total, stage). ``admissions`` are rate limits that other processes share.

    ::

        llm = create_llm("openai:gpt-4o-mini", load_settings(), CallGate(8))

    Raises:
        SettingsError: The spec has another form, names no model, or its endpoint's key is missing; or a model of one's
            own cannot be made.
        DependencyError: ``local:`` without the extra ``local``.
    """
    if is_own(spec):
        return create_own_llm(spec, settings, gate, forms=SPEC_FORMS)
    # What only reads, or searches, makes no model, and would load openai for a second in vain.
    from .completion_client import TextChatOpenAI  # noqa: PLC0415
    from .endpoint import EndpointLLM  # noqa: PLC0415
    from .openai_client import open_chat  # noqa: PLC0415
    from .wire.adaptations import adaptations_at  # noqa: PLC0415

    is_text = spec.startswith(_COMPLETION)
    spec = without_completion(spec)
    if is_local(spec):
        endpoint, gate = _local_endpoint(spec, settings, on_progress), CallGate(LOCAL_CALLS_AT_ONCE)
        name = LOCAL_ENDPOINT
        rates = RateLimit()
    else:
        endpoint = resolve_endpoint(spec, settings)
        name = endpoint_name(endpoint.base_url or OPENAI_BASE_URL, settings.endpoint_names.items())
        rates = rates_of(endpoint, settings, admissions)
    chat = open_chat(
        endpoint.model,
        base_url=endpoint.base_url,
        api_key=endpoint.api_key,
        timeout_s=settings.timeout_s,
        max_reply_bytes=settings.max_reply_bytes,
        client=TextChatOpenAI if is_text else None,
        adaptations=adaptations_at(f"{name} {TextChatOpenAI.style if is_text else ''}".strip(), endpoint.model),
    )
    secrets = endpoint.secrets()
    return EndpointLLM(chat, endpoint=name, gate=gate, rates=rates, retries=settings.retries, secrets=secrets)


def source_of_llm(spec: str) -> str:
    """Return the digest of the source of a model of one's own; ``""`` for any other.

    Raises:
        SettingsError: It cannot be imported, or its file has changed since.
    """
    return find_own_llm(spec, forms=SPEC_FORMS).source if is_own(spec) else ""


def priced_as(spec: str, settings: Settings) -> str:
    """Return what finds the price of a model: its spec; of one of one's own, which is made, the name in its records.

    Raises:
        SettingsError: One of one's own cannot be made.
    """
    return create_llm(spec, settings, CallGate(1)).model if is_own(spec) else spec


def create_judge_llm(
    reader: CacheableLLM,
    settings: Settings,
    gate: CallGate,
    *,
    admissions: Admissions | None = None,
    on_progress: StageProgress | None = None,
) -> CacheableLLM:
    """Return the judging model: ``reader`` itself if the settings name the same model for both.

    Raises:
        UserError: The model cannot be created, as in ``create_llm``.
    """
    if settings.judge_spec == settings.llm_spec:
        return reader
    return create_llm(settings.judge_spec, settings, gate, admissions=admissions, on_progress=on_progress)


def rates_of(endpoint: Endpoint, settings: Settings, admissions: Admissions | None = None) -> RateLimit:
    """Return the rate limits of an endpoint's model, shared by all its callers of the process.

    Providers count by model, so chat and embeddings share limits and pauses where they name the same model.
    ``admissions`` are limits that other processes share too.
    """
    requests, tokens = settings.requests_per_minute, settings.tokens_per_minute
    if admissions is not None and (requests or tokens):
        name = endpoint_name(endpoint.base_url or OPENAI_BASE_URL, settings.endpoint_names.items())
        return SharedRateLimit(admissions, f"{name} {endpoint.model}", counts_tokens=bool(tokens))
    return _rates_at(background_loop(), endpoint.base_url, endpoint.model, requests, tokens)


@functools.cache
def _rates_at(loop: BackgroundLoop, base_url: str | None, model: str, requests: int, tokens: int) -> RateLimit:
    return RateLimit(requests_per_minute=requests, tokens_per_minute=tokens)


@functools.cache
def gate_at(loop: BackgroundLoop, base_url: str | None, model: str, max_concurrency: int) -> CallGate:
    """Return the cap on simultaneous calls that all embedders of the process share for an endpoint and model."""
    return CallGate(max_concurrency)


def _local_endpoint(spec: str, settings: Settings, on_progress: StageProgress | None) -> Endpoint:
    from .local import open_local_model  # noqa: PLC0415 - an optional extra

    report = on_progress or (lambda done, total, stage: None)
    report(0, 0, "starting the local model")
    running = open_local_model(
        spec.removeprefix("local:"),
        settings.home,
        on_progress=lambda done, total: report(done, total, "joining the local model's file"),
    )
    report(1, 1, "starting the local model")
    return Endpoint(base_url=Address(running.base_url), model=running.model_name, api_key=running.api_key)
