"""Evidence that would fill a prompt, shortened by the model to what it says of the question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ..calls.messages import Message
from ..calls.tokens import beginning, message_tokens, shortened, text_tokens
from .prompts import digest_messages

AskForDigest = Callable[[list[Message]], Awaitable[str | None]]
"""One model call; None where it failed or may not be made."""


async def digested(
    passages: Sequence[str], query: str, ask: AskForDigest, *, max_prompt_tokens: int, max_tokens: int
) -> str:
    """What the passages say of the question, in ``max_tokens`` at most; behind each fact its passage's number.

    Each call reads as many passages as its prompt has room for, so that there are as many calls as there are
    prompts full. Passages of a call that fails are cut instead; where all fail, this is what fits of each.

    Args:
        passages: Best first; they are numbered from 1 on.
        query: The question.
        ask: Makes a call.
        max_prompt_tokens: Tokens of one call's prompt.
        max_tokens: Tokens of the outcome.
    """
    query = shortened(query, max_prompt_tokens // 4)
    room = max(1, max_prompt_tokens - message_tokens(digest_messages("", query)))
    batches = _batches([f"[{number}] {passage}" for number, passage in enumerate(passages, start=1)], room)
    parts: list[str] = []
    for batch in batches:
        share = max_tokens // len(batches)
        digest = await ask(digest_messages("\n\n".join(batch), query))
        cut = [shortened(passage, share // len(batch)) for passage in batch]
        parts.append(beginning(digest, share) if digest else "\n\n".join(cut))
    return beginning("\n\n".join(filter(None, parts)), max_tokens)


def _batches(passages: Sequence[str], room: int) -> list[list[str]]:
    """The passages in their order, in as few prompts as hold them; one that is too long for any is shortened."""
    batches: list[list[str]] = []
    left = 0
    for passage in (shortened(passage, room) for passage in passages):
        cost = text_tokens(passage) + 1
        if not batches or cost > left:
            batches.append([])
            left = room
        batches[-1].append(passage)
        left -= cost
    return batches
