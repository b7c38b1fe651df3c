"""The model calls that lead a conversation. One that fails for good gives None, so that the turn can go on without."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from ....modules.calls.completion import Completion
from ....modules.calls.messages import Message
from ....modules.calls.usage import CallMeter
from ....modules.errors import ModelCallError, ModelSetupError
from ....modules.llm.endpoint import CallOptions
from ....modules.llm.json_reply import ReplyProblem, ask_until_usable, closed_schema, parse_json_reply
from .context import TurnContext

logger = logging.getLogger(__name__)

Reply = TypeVar("Reply", bound=BaseModel)

MAX_REPAIRS = 1
"""Further calls after a reply that cannot be used."""


async def ask_json(
    context: TurnContext, messages: Sequence[Message], reply: type[Reply], *, meter: CallMeter
) -> Reply | None:
    """The model's reply as JSON; None if it failed, or wrote nothing usable at the second try either.

    Raises:
        ModelSetupError: The model's endpoint can serve no request.
    """

    def read(completion: Completion) -> Reply:
        return parse_json_reply(completion.text, reply)

    try:
        return await ask_until_usable(
            context.chat, messages, closed_schema(reply), read, meter=meter, max_repairs=MAX_REPAIRS
        )
    except ModelSetupError:
        raise
    except (ReplyProblem, ModelCallError) as error:
        logger.warning("%s: no usable reply (%s); the turn goes on without it", meter.node, error)
        return None


async def ask_text(
    context: TurnContext, messages: Sequence[Message], *, meter: CallMeter, max_tokens: int
) -> Completion | None:
    """The model's reply, asked for in ``max_tokens``, thinking aside; None if it failed. It may be longer all the same.

    Raises:
        ModelSetupError: The endpoint can serve no request.
    """
    options = CallOptions(max_tokens=max_tokens + context.limits.max_thinking_tokens)
    try:
        return await context.services.reader.complete(messages, meter=meter, options=options)
    except ModelSetupError:
        raise
    except ModelCallError as error:
        logger.warning("%s: the model failed (%s); the turn goes on without it", meter.node, error)
        return None


async def answer_live(context: TurnContext, messages: Sequence[Message], *, meter: CallMeter) -> str:
    """An answer, streamed in pieces.

    Raises:
        ModelCallError: The model failed after its last attempt; the turn stays open.
    """
    stream = context.stream
    if stream is not None:
        stream.start_over()
    completion = await context.services.reader.complete(
        messages,
        meter=meter,
        on_text=stream.on_text if stream else None,
        on_thinking=stream.on_thinking if stream else None,
    )
    return completion.text
