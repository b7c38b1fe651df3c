# ruff: noqa: E501 - a host's sentence stays on its line
"""Errors with which real hosts refuse a part of a request by name, in their words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]
IMAGINED = "judging-model"
"""Name of the model in all requests."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A host that refuses one part of a request, until it is sent otherwise."""

    refuses: Callable[[Json], bool]
    """Whether it refuses a request."""
    says: object
    """The body of its refusal; a text is sent as it is."""
    then: Callable[[Json], bool] = lambda body: True
    """What holds for the request that it takes."""
    status: int = 400
    asks: Json = field(default_factory=dict)
    """Options of the call."""
    streams: bool = False
    more: int = 1
    """Requests that the host refuses."""
    model: str = IMAGINED
    question: str = ""
    """What is asked; ``""`` for the usual question."""

    @property
    def body(self) -> str:
        return self.says if isinstance(self.says, str) else json.dumps(self.says)


def error(message: str, **fields: object) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}}


def extra(*place: str) -> Json:
    return {"type": "extra_forbidden", "loc": ["body", *place], "msg": "Extra inputs are not permitted", "input": "…"}


def has(name: str) -> Callable[[Json], bool]:
    return lambda body: name in body


def has_role(*roles: str) -> Callable[[Json], bool]:
    return lambda body: any(each["role"] in roles for each in body["messages"])


def lacks(name: str, *besides: str) -> Callable[[Json], bool]:
    return lambda body: name not in body and all(each in body for each in besides)


def joined(body: Json) -> bool:
    roles = [each["role"] for each in body["messages"]]
    return roles == ["user"] and body["messages"][0]["content"] == "Be brief.\n\nWhat is six by nine?"


def of_type(kind: str) -> Callable[[Json], bool]:
    return lambda body: body.get("response_format", {}).get("type") == kind


LIMIT: Json = {"max_tokens": 50}
JSON: Json = {"json_format": "json_schema", "json_schema": {"type": "object"}}
OBJECT: Json = {"json_format": "json_object"}
OFF: Json = {"thinking": False}
STOPS: Json = {"stop": ("Observation:",)}
LOGPROBS: Json = {"top_logprobs": 20, "max_tokens": 1}
SYSTEM: Json = {"system": "Be brief."}


def limit(says: object, **more: Any) -> Row:
    renamed = lacks("max_tokens", "max_completion_tokens")
    return Row(refuses=has("max_tokens"), says=says, asks=LIMIT, then=renamed, **more)


def temperature(says: object, to: object = None, **more: Any) -> Row:
    return Row(
        refuses=lambda body: "temperature" in body and body["temperature"] != 1,
        says=says,
        then=lambda body: body.get("temperature") == to,
        **more,
    )


def system(says: object, **more: Any) -> Row:
    return Row(refuses=has_role("system", "developer"), says=says, asks=SYSTEM, then=joined, **more)


def schema(says: object, to: str = "json_object", **more: Any) -> Row:
    return Row(refuses=of_type("json_schema"), says=says, asks=JSON, then=of_type(to) if to else has("model"), **more)


def left_out(name: str, asks: Json, says: object, **more: Any) -> Row:
    return Row(refuses=has(name), says=says, asks=asks, then=lacks(name), **more)


NESTED = json.dumps(
    error("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
)
ROWS: dict[str, Row] = {
    # the limit of tokens
    "openai max_tokens": limit(
        error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
    ),
    "openrouter raw max_tokens": limit(
        {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": NESTED}}}
    ),
    "litellm max_tokens": limit(
        error(
            f"litellm.UnsupportedParamsError: openai does not support parameters: ['max_tokens'], for model={IMAGINED}."
        ),
        status=500,
    ),
    "use the other max_tokens": limit(error("Use 'max_completion_tokens' instead of 'max_tokens'.")),
    "only the other max_tokens": limit(error("This model only supports max_completion_tokens")),
    "python max_tokens": limit(error("create() got an unexpected keyword argument 'max_tokens'"), status=500),
    "coded max_tokens": limit(
        error("Unsupported parameter: 'max_tokens'. See our policy.", code="unsupported_parameter")
    ),
    "by field max_tokens": limit({"errors": {"max_tokens": ["unknown field"]}}),
    "fastapi 422 max_tokens": limit({"detail": [extra("max_tokens")]}, status=422),
    # temperature
    "openai temperature": temperature(
        error(
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
            param="temperature",
            code="unsupported_value",
        ),
        to=1,
    ),
    "litellm temperature": temperature(
        error(
            "litellm.UnsupportedParamsError: O-series models don't support temperature=0.0. Only temperature=1 is supported."
        ),
        to=1,
    ),
    "moonshot temperature": temperature(error("invalid temperature: only 1 is allowed for this model"), to=1),
    "anthropic temperature": temperature(error("`temperature` is deprecated for this model.")),
    "tgi temperature": temperature(
        {"error": "Input validation error: `temperature` must be strictly positive", "error_type": "validation"},
        status=422,
    ),
    "azure temperature": temperature(error("Unrecognized request argument supplied: temperature")),
    "does not apply temperature": temperature(error("temperature does not apply to this model")),
    "several values temperature": temperature(error("temperature=0.0 and max_tokens=50 are not supported")),
    "litellm values temperature": temperature(
        error("m does not support parameters: {'temperature': 0.0}, for model=m")
    ),
    "temperature beside a quotation": temperature(
        error('temperature is not supported (the text is "Is \\"moderation\\" a safety policy?")'),
        question='Is "moderation" a safety policy?',
    ),
    "chinese temperature": temperature(error("参数 temperature 不支持")),
    "temperature 404": temperature(error("Parameter temperature is not supported by this deployment"), status=404),
    "param temperature 500": temperature(
        error("Unsupported parameter: 'temperature' is not supported with this model.", param="temperature"), status=500
    ),
    "place temperature 500": temperature({"detail": [extra("temperature")]}, status=500),
    "temperature 403": temperature(error("temperature is not allowed here"), status=403),
    "in band temperature": temperature({"error": {"message": "temperature is not supported", "code": 400}}, status=200),
    # roles
    "openai system": system(
        error(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            param="messages[0].role",
            code="unsupported_value",
        )
    ),
    "vllm system": system(
        {"object": "error", "message": "System role not supported", "type": "BadRequestError", "code": 400}
    ),
    "llama.cpp roles": system(
        error("Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...", code=500),
        status=500,
    ),
    "lm studio roles": system(
        {"error": "Error rendering prompt with jinja template: Only user and assistant roles are supported!"}
    ),
    "tgi system": system(
        {"error": "Template error: invalid operation: System role not supported (in <string>:1)"}, status=422
    ),
    "gemini system": system(
        [error("Developer instruction is not enabled for models/gemma-3-27b-it", status="INVALID_ARGUMENT")]
    ),
    "bedrock system": system(error("This model doesn't support system messages. Try again without a system message.")),
    "anthropic system": system(error('messages: Unexpected role "system". Use the top-level parameter.')),
    "serde system": system(
        "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `system`, expected "
        "`user` or `assistant`",
        status=422,
    ),
    "perplexity roles": system(
        error("After the (optional) system message(s), user and assistant roles should be alternating.")
    ),
    "azure developer": Row(
        refuses=has_role("developer"),
        says=error(
            "Invalid value: 'developer'. 'developer' is not one of ['system', 'assistant', 'user'] - 'messages.0.role'"
        ),
        asks=SYSTEM,
        then=has_role("system"),
        model="o9",
    ),
    "o1-mini developer, then system": system(
        error(
            "Unsupported value: 'messages[0].role' does not support 'developer' or 'system' with this model.",
            param="messages",
        ),
        model="o9",
        more=2,
    ),
    "mistral 422 role": system(
        {
            "detail": [
                {
                    "type": "literal_error",
                    "loc": ["body", "messages", 0, "role"],
                    "msg": "Input should be 'user' or 'assistant'",
                    "input": "system",
                }
            ]
        },
        status=422,
    ),
    "one of two roles": system(error("messages[0].role must be one of: user, assistant")),
    "first message": system(error('first message must use the "user" role')),
    "start with user": system(error("Conversations must start with a user message"), status=500),
    "gemini roles": system([error("Please ensure that multiturn requests alternate between user and model.")]),
    "has no such role": system(error("This model does not have a system role")),
    "no such role": system(error("No system role in this model's template"), status=500),
    # JSON
    "openai json_schema": schema(
        error(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            param="response_format",
        )
    ),
    "deepseek json_schema": schema(error("This response_format type is unavailable now")),
    "groq json_schema": schema(
        error("This model does not support response format `json_schema`. See the supported models.")
    ),
    "tgi json_schema": schema(
        "Failed to deserialize the JSON body into the target type: response_format: unknown variant `json_schema`, expected "
        "one of `json_object`, `regex`",
        status=422,
    ),
    "llama.cpp json_schema": schema(
        error('response_format type must be one of "text" or "json_object", but got: json_schema')
    ),
    "anthropic response_format": schema(error("response_format: Extra inputs are not permitted"), to=""),
    "gemini json": left_out("response_format", OBJECT, [error("JSON mode is not enabled for models/gemma-3-27b-it")]),
    "dashscope json": left_out(
        "response_format",
        OBJECT,
        error(
            "<400> InternalError.Algo.InvalidParameter: 'messages' must contain the word 'json' in some form, to use "
            "'response_format' of type 'json_object'."
        ),
    ),
    # thinking
    "vllm thinking": left_out(
        "chat_template_kwargs",
        OFF,
        {
            "object": "error",
            "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'chat_template_kwargs'), 'msg': 'Extra inputs are not "
            "permitted', 'input': {'enable_thinking': False}}]",
            "code": 400,
        },
    ),
    "groq thinking": left_out("chat_template_kwargs", OFF, error("property 'chat_template_kwargs' is unsupported")),
    "dashscope thinking": left_out("chat_template_kwargs", OFF, error("This model does not support enable_thinking.")),
    "ollama thinking": left_out("chat_template_kwargs", OFF, error('"gemma3" does not support thinking')),
    "openrouter thinking": left_out(
        "chat_template_kwargs", OFF, error("Reasoning is mandatory for this endpoint and cannot be disabled.")
    ),
    # stop
    "openai stop": left_out(
        "stop", STOPS, error("Unsupported parameter: 'stop' is not supported with this model.", param="stop")
    ),
    "xai stop": left_out(
        "stop", STOPS, {"code": "invalid argument", "error": "Argument not supported on this model: stop"}
    ),
    "bedrock stop": left_out(
        "stop", STOPS, error("This model doesn't support the stopSequences field. Remove stopSequences.")
    ),
    # in other words, and in other languages
    "a gateway max_tokens": limit(error("wants max_completion_tokens; the old spelling max_tokens is gone")),
    "german max_tokens": limit(
        error("Der Parameter max_tokens wird von diesem Modell nicht angenommen.", param="max_tokens")
    ),
    "german named max_tokens": limit(
        error("max_tokens gibt es nicht mehr. Bitte anpassen.", code="unsupported_parameter")
    ),
    "french max_tokens": limit(error("Le paramètre max_tokens est remplacé : max_completion_tokens.")),
    "a gateway temperature": temperature(error("Only the default (1) value is allowed for temperature"), to=1),
    "german temperature": temperature(
        error("Für temperature gilt hier nur der Standardwert.", param="temperature", code="invalid_value")
    ),
    "spanish temperature": temperature(
        error("No se admite temperature. Quítelo, por favor.", code="unsupported_value")
    ),
    "german json_schema": schema(
        error("Diese Ausgabe kann das Modell nicht: json_schema", param="response_format"), to="json_object"
    ),
    # servers that break at a format
    "a crash json_schema": schema(error("failed to compile json_schema grammar", type="server_error"), status=500),
    "a grammar json_schema": schema(error("Grammar initialization failed"), status=500),
    "a key json_schema": schema(error("KeyError: 'response_format'"), to="", status=500),
    "a crash json_object": Row(
        refuses=has("response_format"),
        says=error("'NoneType' object has no attribute 'response_format'"),
        status=500,
        asks=OBJECT,
        then=lacks("response_format"),
    ),
    # streams
    "openai stream": Row(
        refuses=lambda body: body["stream"],
        says=error(
            "Your organization must be verified to stream this model.", param="stream", code="unsupported_value"
        ),
        then=lambda body: not body["stream"] and "stream_options" not in body,
        streams=True,
    ),
    "azure stream_options": left_out(
        "stream_options",
        {},
        error(
            "1 validation error for Request\nbody -> stream_options\n  extra fields not permitted (type=value_error.extra)"
        ),
        streams=True,
    ),
    "mistral stream_options": left_out(
        "stream_options",
        {},
        {"object": "error", "message": {"detail": [extra("stream_options")]}, "type": "invalid_request_error"},
        status=422,
        streams=True,
    ),
    "a gateway whole": Row(
        refuses=has("stream"),
        says=error("stream is not supported"),
        then=lacks("stream"),
    ),
    "dashscope whole": Row(
        refuses=lambda body: not body["stream"],
        says=error("This model only support stream mode, please enable the stream parameter to access the model."),
        then=lambda body: bool(body["stream"]),
    ),
    "dashscope non-streaming": Row(
        refuses=lambda body: not body["stream"],
        says=error("parameter.enable_thinking must be set to false for non-streaming calls"),
        then=lambda body: bool(body["stream"]),
    ),
    # several at once, and one after the other
    "litellm two at once": Row(
        refuses=lambda body: "temperature" in body or "stop" in body,
        says=error(
            "litellm.UnsupportedParamsError: o1 does not support parameters: ['temperature', 'stop'], for model=o1."
        ),
        asks=STOPS,
        then=lambda body: "temperature" not in body and "stop" not in body,
    ),
    "both formats": Row(
        refuses=has("response_format"),
        says=error("response_format of type json_schema and json_object is not supported"),
        asks=JSON,
        then=lacks("response_format"),
        more=2,
    ),
}
LOGPROB_ROWS: dict[str, Row] = {
    name: Row(refuses=has("logprobs"), says=says, status=status, asks=LOGPROBS)
    for name, (status, says) in {
        "openai 403": (403, error("You are not allowed to request logprobs from this model")),
        "openai 400": (400, error("'logprobs' is not supported with this model.", param="logprobs")),
        "groq": (400, error("`logprobs` is not supported with this model")),
        "vllm": (
            400,
            {"object": "error", "message": "Requested sample logprobs of 20, which must be at most 5", "code": 400},
        ),
        "gemini": (400, [error('Invalid JSON payload received. Unknown name "logprobs": Cannot find field.')]),
        "gemini not enabled": (400, [error("Logprobs is not enabled for models/gemini-2.5-flash")]),
        "tgi": (422, {"error": "Input validation error: `top_n_tokens` must be >= 0 and <= 5. Given: 20"}),
        "deepseek": (400, error("deepseek-reasoner does not support the parameter logprobs")),
        "fastapi": (422, {"detail": [extra("logprobs"), extra("top_logprobs")]}),
    }.items()
}

Told = tuple[int, object, str]
"""Status and body of an error, and what it is: the refused parts, or one of ``TOLD_KINDS``."""
TOLD_KINDS = ("setup", "request", "filter", "later")
ASKED: Json = {"model": IMAGINED, "messages": [{"role": "user", "content": "?"}], "temperature": 0, "max_tokens": 9}
ASKED_ALL: Json = {**ASKED, "stop": ["x"], "response_format": {"type": "json_schema"}, "chat_template_kwargs": {}}
TOLD: dict[str, Told] = {
    # refused parts
    "vllm stop": (400, {"object": "error", "message": "stop is not supported by this engine", "code": 400}, "stop"),
    "sglang thinking": (
        400,
        {"object": "error", "message": "chat_template_kwargs: extra fields not permitted"},
        "chat_template_kwargs",
    ),
    "lm studio format": (400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}, "json_schema"),
    "mistral limit": (422, {"detail": [extra("max_tokens")]}, "max_tokens"),
    "bedrock temperature": (
        400,
        error("The model returned the following errors: temperature: this field is not supported"),
        "temperature",
    ),
    # too long a prompt
    "vllm length": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages, Please reduce the length of the messages.",
            "code": 400,
        },
        "request",
    ),
    "sglang length": (
        400,
        {
            "object": "error",
            "message": "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            "code": 400,
        },
        "request",
    ),
    "llama.cpp length": (
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_ctx": 4096,
            }
        },
        "request",
    ),
    "tgi length": (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 9 `max_new_tokens`",
            "error_type": "validation",
        },
        "request",
    ),
    "groq length": (413, error("Request too large for model", code="request_too_large"), "request"),
    "together length": (
        422,
        error("Input validation error: `inputs` tokens + `max_tokens` must be <= 4096"),
        "request",
    ),
    "dashscope length": (
        400,
        error("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"),
        "request",
    ),
    "moonshot length": (400, error("Invalid request: Your request exceeded model token limit: 8192"), "request"),
    "deepseek limit": (400, error("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), "request"),
    # a bad key
    "gemini key": (
        400,
        [error("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT", code=400)],
        "setup",
    ),
    "gemini old key": (400, [error("API key expired. Please renew the API key.", code=400)], "setup"),
    "xai key": (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "Incorrect API key provided: xa***. You can obtain an API key from the console.",
        },
        "setup",
    ),
    "fireworks key": (403, error("The API key you provided is invalid.", code="UNAUTHORIZED"), "setup"),
    "dashscope key": (401, error("Incorrect API key provided.", code="invalid_api_key"), "setup"),
    # a missing model
    "deepseek model": (400, error("Model Not Exist"), "setup"),
    "openrouter model": (400, {"error": {"message": "judging-model is not a valid model ID", "code": 400}}, "setup"),
    "mistral model": (
        400,
        {"object": "error", "message": "Invalid model: judging-model", "type": "invalid_model", "code": "1500"},
        "setup",
    ),
    "ollama model": (404, error('model "judging-model" not found, try pulling it first', type="api_error"), "setup"),
    "litellm model": (
        400,
        error(
            "Invalid model name passed in model=judging-model. Call `/v1/models` to view available models for your key."
        ),
        "setup",
    ),
    "bedrock model": (400, error("The provided model identifier is invalid."), "setup"),
    "lm studio model": (400, {"error": "No models loaded. Please load a model in the developer page."}, "setup"),
    # no credit
    "deepseek credit": (402, error("Insufficient Balance"), "setup"),
    "moonshot credit": (
        429,
        error(
            "Your account is suspended, please check your plan and billing details", type="exceeded_current_quota_error"
        ),
        "setup",
    ),
    "anthropic credit": (400, error("Your credit balance is too low to access the API."), "setup"),
    "zhipu credit": (429, error("余额不足或无可用资源包,请充值。", code="1113"), "setup"),
    "groq rate": (
        429,
        error("Rate limit reached for model on tokens per minute (TPM): Limit 6000", code="rate_limit_exceeded"),
        "later",
    ),
    "gemini rate": (
        429,
        [error("You exceeded your current quota. Please retry in 30s.", status="RESOURCE_EXHAUSTED", code=429)],
        "later",
    ),
    # filters
    "azure filter": (
        400,
        error(
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            code="content_filter",
            param="prompt",
            status=400,
        ),
        "filter",
    ),
    "deepseek filter": (400, error("Content Exists Risk"), "filter"),
    "moonshot filter": (
        400,
        error("The request was rejected because it was considered high risk", type="content_filter"),
        "filter",
    ),
    "bedrock filter": (400, error("The guardrail intervened and blocked the input."), "filter"),
    "qwen filter": (
        400,
        error("Input text data may contain inappropriate content.", code="data_inspection_failed"),
        "filter",
    ),
}
