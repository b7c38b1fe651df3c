"""Options of a call as parameters of a request, in the words of the endpoint that gets it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from ..calls.messages import CallOptions
from .attempts import EndpointFailure

_BY_EFFORT = ("api.openai.com", ".openai.azure.com", "openrouter.ai", "ollama.com")
"""Hosts that know thinking as ``reasoning_effort``."""
_OLLAMA_PORT = 11434
_DASHSCOPE_HOST, _DASHSCOPE_PATH = ".aliyuncs.com", "/compatible-mode/"
LEAVE_OUT_THINKING = "Leave out thinking (JUDGETREE_THINKING, --thinking) for it."
_REFUSALS = frozenset({400, 422})
_NOT_FOUND = 404


def request_params(options: CallOptions, base_url: str) -> dict[str, Any]:
    """Return the parameters of a request besides messages and stop texts.

    Thinking is switched where each service documents it: ``reasoning_effort`` "none" or "medium" at OpenAI, Azure,
    OpenRouter and Ollama, whose server ignores other fields (docs.ollama.com/api/openai-compatibility);
    ``enable_thinking`` at DashScope; elsewhere ``chat_template_kwargs``, which vLLM (docs.vllm.ai, reasoning outputs),
    SGLang (qwen.readthedocs.io, deployment) and llama.cpp (tools/server) hand to the model's chat template.
    """
    address = urlsplit(base_url)
    params: dict[str, Any] = {"temperature": options.temperature or 0.0}
    if options.seed is not None:
        params["seed"] = options.seed
    if options.max_tokens is not None:
        params["max_completion_tokens" if address.hostname == "api.openai.com" else "max_tokens"] = options.max_tokens
    if options.json_format == "json_schema":
        schema = {"name": "reply", "strict": True, "schema": dict(options.json_schema or {})}
        params["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif options.json_format == "json_object":
        params["response_format"] = {"type": "json_object"}
    if options.thinking is not None:
        params |= _thinking(address, thinks=options.thinking)
    if options.top_logprobs is not None:
        params |= {"logprobs": True, "top_logprobs": options.top_logprobs}
    return params


def must_stream(options: CallOptions, base_url: str) -> bool:
    """Return whether a call needs a stream even without a listener: some models at DashScope think in streams only."""
    return options.thinking is True and _is_dashscope(urlsplit(base_url))


def with_hints(failure: EndpointFailure, options: CallOptions, *, is_chat: bool) -> EndpointFailure:
    """Add to a refusal that the model may not let its thinking be switched, or may have no chat."""
    if failure.status == _NOT_FOUND and is_chat:
        hint = "or write completion: before it if it completes texts and has no chat"
    elif options.thinking is not None and failure.status in _REFUSALS:
        hint = "or leave out thinking (JUDGETREE_THINKING), which this model may not let be switched"
    else:
        return failure
    return replace(failure, remedy=f"{failure.remedy}, {hint}")


def _thinking(address: SplitResult, *, thinks: bool) -> dict[str, object]:
    host = address.hostname or ""
    if any(host == name or (name[0] == "." and host.endswith(name)) for name in _BY_EFFORT):
        return {"reasoning_effort": "medium" if thinks else "none"}
    if address.port == _OLLAMA_PORT:
        return {"reasoning_effort": "medium" if thinks else "none"}
    if _is_dashscope(address):
        return {"enable_thinking": thinks}
    return {"chat_template_kwargs": {"enable_thinking": thinks}}


def _is_dashscope(address: SplitResult) -> bool:
    return (address.hostname or "").endswith(_DASHSCOPE_HOST) or address.path.startswith(_DASHSCOPE_PATH)
