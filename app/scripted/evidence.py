"""What the scripts of prompts that hold a query and its evidence share: such a prompt is taken apart and answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...modules.calls.messages import Message
from .answers import ChatReply, PromptMismatch, ScriptedAnswers


class EvidenceScript(NamedTuple):
    """How one kind of prompt is taken apart and answered."""

    pattern: re.Pattern[str]
    """Of the user message, with the groups ``query`` and ``evidence``."""
    reply: Callable[[ScriptedAnswers, str, str], str]


def play(
    scripts: Mapping[str, EvidenceScript], answers: ScriptedAnswers, messages: Sequence[Message], *, module: str
) -> ChatReply | None:
    """The reply to a prompt whose system message has a script; None for any other.

    Args:
        scripts: By system message.
        answers: What the model knows.
        messages: The prompt.
        module: Where such prompts are built, for the message of the error.

    Raises:
        PromptMismatch: The system message has a script, but the user message does not follow its template.
    """
    system = next((text for role, text in messages if role == "system"), "")
    user = next((text for role, text in messages if role == "user"), "")
    script = scripts.get(system)
    if script is None:
        return None
    match = script.pattern.fullmatch(user)
    if match is None:
        raise PromptMismatch(
            f"The user message does not follow the template that belongs to its system message: {user[:80]!r}. "
            f"Build it with the functions of judgetree.modules.{module}."
        )
    return ChatReply(text=script.reply(answers, match["query"], match["evidence"]))
