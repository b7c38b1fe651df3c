"""The model ``fast``: one call without a search, for titles and tags of chat clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from sse_starlette import ServerSentEvent

from ....graphs.config.limits import Limits
from ....graphs.threads.amounts import budget_within
from ....modules.background_loop import background_loop
from ....modules.calls.completion import Completion as Reply
from ....modules.calls.messages import CallOptions
from ....modules.calls.prices import Prices
from ....modules.calls.tokens import message_tokens
from ....modules.calls.usage import CallMeter, total_usage
from ....modules.llm.contract import ChatLLM
from ....modules.storage.texts import check_text
from ..serving.caller import Caller
from ..serving.served import FAST, Served
from ..serving.streams import event_stream, json_event, while_connected
from .chunks import GrowingCompletion, data_of, finish_reason_of
from .requests import ChatRequest
from .sources import AnswerLinks

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


async def answer_fast(request: Request, body: ChatRequest, served: Served, caller: Caller) -> Response:
    """Answer the messages by one call of the cheap model; as a stream it is one piece.

    Raises:
        SettingsError: A message cannot be sent.
        ModelCallError: The call failed.
        ApiError: HTTP 429: no place is free, or the key's budget is spent.
        BudgetSpent: The call does not fit into the limits of a question, or into the day of the key.
    """
    for each in body.messages:
        check_text("A message", each.text)
    llm = await served.fast()
    messages = [(role, each.text) for each in body.messages if (role := _ROLES.get(each.role))]
    async with served.admissions.admitted(caller) as admission:
        meter = CallMeter(node=FAST)  # here, where the key pays
        admission.calls = meter.records
        asking = _asked(llm, messages, _options(body), meter, limits=served.limits_of(caller), prices=served.prices)
        answer = await while_connected(request, background_loop().arun(asking))
    ended = finish_reason_of(meter.records)
    said: dict[str, object] = {"content": answer.text, "refusal": answer.refusal or None}
    completion = GrowingCompletion(model=FAST, links=AnswerLinks.of(request, caller), prices=served.prices)
    usage = total_usage(meter.records)
    if not body.stream:
        return JSONResponse(completion.whole_of({"role": "assistant", **said}, usage, ended))

    async def pieces() -> AsyncIterator[ServerSentEvent]:
        chunks = [
            completion.chunk({"role": "assistant", "content": ""}),
            completion.chunk({name: text for name, text in said.items() if text is not None}),
            completion.chunk({}, finish_reason=ended),
            *([completion.usage_chunk(usage)] if body.wants_usage else []),
        ]
        for chunk in chunks:
            yield json_event(data_of(chunk))
        yield ServerSentEvent(data="[DONE]", sep="\n")

    return event_stream(pieces(), heartbeat_s=served.options.heartbeat_s)


def _options(body: ChatRequest) -> CallOptions:
    """Return what the request says of the answer as options of the call."""
    return CallOptions(
        max_tokens=body.most_tokens,
        temperature=body.temperature,
        seed=body.seed,
        stop=body.stops,
        json_format=body.json_format,
        json_schema=body.json_schema,
    )


async def _asked(
    llm: ChatLLM,
    messages: list[tuple[str, str]],
    options: CallOptions,
    meter: CallMeter,
    *,
    limits: Limits,
    prices: Prices,
) -> Reply:
    """Return the reply of one call within the limits of a question; its reply may be as long as they allow."""
    meter.budget = await budget_within(limits, prices=prices)
    if limits.max_tree_tokens is not None:
        most = max(1, limits.max_tree_tokens - message_tokens(messages))
        options = replace(options, max_tokens=min(most, options.max_tokens or most))
    return await llm.complete(messages, meter=meter, options=options)
