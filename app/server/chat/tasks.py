"""Prompts that chat clients send on their own, such as for the title of a chat; they are no questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .requests import Message

_INSTRUCTIONS = ("system", "developer")
_HISTORY = "\n<chat_history>\n"
_DOCUMENTS = "<context>"
"""Before documents that a client adds to a question, whose prompt is else like those of Open WebUI's tasks."""


@dataclass(frozen=True, kw_only=True)
class TaskPrompt:
    """The form of a prompt of a chat client."""

    client: str
    task: str
    begins: str
    holds: str = ""
    """What stands behind the beginning, and before any documents."""

    def fits(self, text: str) -> bool:
        """Return whether a message is such a prompt."""
        return text.lstrip().startswith(self.begins) and self.holds in text.partition(_DOCUMENTS)[0]


TASK_PROMPTS = (
    TaskPrompt(
        client="Open WebUI",
        task="titles, tags, follow-ups, queries, pictures and completions of a chat",
        begins="### Task:",
        holds=_HISTORY,
    ),
    TaskPrompt(
        client="Open WebUI to 0.4",
        task="titles of a chat",
        begins="Create a concise, 3-5 word title",
        holds=_HISTORY,
    ),
    TaskPrompt(
        client="Open WebUI",
        task="emoji of a voice call",
        begins="Your task is to reflect the speaker's likely facial expression through a fitting emoji.",
        holds="Message: ",
    ),
    TaskPrompt(
        client="Open WebUI",
        task="one answer made of several models' answers",
        begins="You have been provided with a set of responses from various models to the latest user query:",
        holds="Responses from models: ",
    ),
    TaskPrompt(
        client="LibreChat",
        task="titles of a chat",
        begins="Provide a concise, 5-word-or-less title for the conversation, using title case conventions.",
    ),
    TaskPrompt(
        client="LibreChat",
        task="titles of a chat with their language",
        begins="Analyze this conversation and provide:\n1. The detected language",
        holds="2. A concise title",
    ),
    TaskPrompt(
        client="LibreChat to 0.7",
        task="titles of a chat",
        begins="Please generate a concise, 5-word-or-less title for the conversation, using its same language",
    ),
    TaskPrompt(
        client="LibreChat to 0.7",
        task="titles of a chat",
        begins="Write a concise title for this conversation in the detected language. Title in 5 Words or Less.",
    ),
    TaskPrompt(
        client="LibreChat to 0.7",
        task="language of a chat",
        begins="Detect the language used in the following text. Note: words may be misspelled or cut off; use context",
    ),
)
"""Prompts of clients with their default settings; one whose prompts were changed has to name the model ``fast``."""


def is_task_prompt(messages: Sequence[Message]) -> bool:
    """Return whether a request is a prompt of a chat client: one message of the user, in a form of ``TASK_PROMPTS``."""
    asked = [message for message in messages if message.role not in _INSTRUCTIONS]
    return len(asked) == 1 and any(each.fits(asked[0].text) for each in TASK_PROMPTS)
