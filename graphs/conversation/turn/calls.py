"""The model calls of a turn besides its search. Most return None on failure, so that the turn continues without."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from ....modules.calls.completion import Completion
from ....modules.calls.messages import CallOptions, Message
from ....modules.calls.usage import CallMeter
from ....modules.errors import BudgetSpent, ModelCallError, ModelSetupError
from ....modules.llm.contract import ChatLLM
from ....modules.llm.json_reply import JsonChat, ReplyProblem, ask_until_usable, closed_schema, parse_json_reply
from ....modules.reader.formed import in_form
from .context import TurnContext

logger = logging.getLogger(__name__)

Reply = TypeVar("Reply", bound=BaseModel)

MAX_REPAIRS = 1
"""Further calls after an unusable reply."""


async def ask_json(
    chat: JsonChat, messages: Sequence[Message], reply: type[Reply], *, meter: CallMeter
) -> Reply | None:
    """Ask for a reply as JSON; None if the call failed, the limits leave no room, or the second reply was unusable too.

    Raises:
        ModelSetupError: The endpoint rejects the key, the model name or the request.
    """

    def read(completion: Completion) -> Reply:
        return parse_json_reply(completion.text, reply)

    try:
        return await ask_until_usable(chat, messages, closed_schema(reply), read, meter=meter, max_repairs=MAX_REPAIRS)
    except ModelSetupError:
        raise
    except (ReplyProblem, ModelCallError, BudgetSpent) as error:
        logger.warning("%s: no usable reply (%s); the turn continues without it", meter.node, error)
        return None


async def ask_text(
    context: TurnContext,
    messages: Sequence[Message],
    *,
    meter: CallMeter,
    max_tokens: int,
    llm: ChatLLM | None = None,
) -> Completion | None:
    """Ask ``llm``, or else the reader, for a reply of ``max_tokens`` besides thinking; None without one.

    None is returned if the call failed, or if the limits of the question leave no room for it.

    A model that thinks little may write a longer reply.

    Raises:
        ModelSetupError: The endpoint rejects the key, the model name or the request.
    """
    options = CallOptions(max_tokens=max_tokens + context.limits.max_thinking_tokens)
    try:
        return await (llm or context.services.reader).complete(messages, meter=meter, options=options)
    except ModelSetupError:
        raise
    except (ModelCallError, BudgetSpent) as error:
        logger.warning("%s: no reply (%s); the turn continues without it", meter.node, error)
        return None


async def answer_live(context: TurnContext, messages: Sequence[Message], *, meter: CallMeter) -> str:
    """Ask for an answer, and stream it to the turn's listener.

    Raises:
        ModelCallError: The model failed after its last attempt; the turn stays open.
    """
    stream = context.stream
    if stream is not None:
        stream.restart()
    services = context.services
    completion = await in_form(services.reader, services.answer_form).complete(
        messages,
        meter=meter,
        on_text=stream.on_text if stream else None,
        on_thinking=stream.on_thinking if stream else None,
    )
    return completion.text
