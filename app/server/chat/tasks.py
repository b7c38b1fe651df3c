"""Prompts that chat clients send on their own, such as for the title of a chat; they are no questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .requests import Message

_INSTRUCTIONS = ("system", "developer")


@dataclass(frozen=True, kw_only=True)
class TaskPrompt:
    """The form of a prompt of a chat client."""

    client: str
    task: str
    form: re.Pattern[str]
    """Matches from the beginning of the prompt."""


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\s*{pattern}", re.DOTALL)


TASK_PROMPTS = (
    # Its prompt with documents of its own has a <context>, and is a question.
    TaskPrompt(
        client="Open WebUI",
        task="titles, tags, follow-ups, queries, pictures and completions of a chat",
        form=_form(r"### Task:\s(?:(?!<context>).)*<chat_history>"),
    ),
    TaskPrompt(
        client="Open WebUI to 0.4",
        task="titles of a chat",
        form=_form(r"Create a concise, 3-5 word title\b.*<chat_history>"),
    ),
    TaskPrompt(
        client="Open WebUI",
        task="emoji of a voice call",
        form=_form(
            r"Your task is to reflect the speaker's likely facial expression through a fitting emoji\..*Message: "
        ),
    ),
    TaskPrompt(
        client="Open WebUI",
        task="one answer made of several models' answers",
        form=_form(r"You have been provided with a set of responses from various models\b.*Responses from models: "),
    ),
    TaskPrompt(
        client="LibreChat",
        task="titles of a chat",
        form=_form(r"(?:Provide|Please generate) a concise, 5-word-or-less title for the conversation\b"),
    ),
    TaskPrompt(
        client="LibreChat",
        task="titles of a chat with their language",
        form=_form(r"Analyze this conversation and provide:\s+1\. The detected language\b.*\b2\. A concise title\b"),
    ),
    TaskPrompt(
        client="LibreChat to 0.7",
        task="titles of a chat",
        form=_form(
            r"(?:Write a concise title for this conversation in the|Detect the language used in the following text)\b"
        ),
    ),
)
"""Prompts of clients with their default settings; one whose prompts were changed has to name the model ``fast``."""


def is_task_prompt(messages: Sequence[Message]) -> bool:
    """Return whether a request is a prompt of a chat client: one message of the user, in a form of ``TASK_PROMPTS``."""
    asked = [message for message in messages if message.role not in _INSTRUCTIONS]
    return len(asked) == 1 and any(each.form.match(asked[0].text) for each in TASK_PROMPTS)
