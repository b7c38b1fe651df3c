"""Messages as one text for models that complete a text: instructions, then turns under labels.

Every line of a message that begins like a label is indented, so that no question, passage or reply passes for a turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..calls.messages import Message

_LABELS = {"user": "User", "assistant": "Assistant"}
_GAP = "\n\n"
TURN_STOPS = (f"\n{_LABELS['user']}:",)
"""Stop texts of every call: a model that has answered writes the next question."""

_BREAKS = "\r\v\f\x1c-\x1e\x85\u2028\u2029"
_INVISIBLE = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_LIKE_A_LABEL = re.compile(
    rf"(?:^|(?<=[{_BREAKS}]))(?=[{_INVISIBLE}]*(?:user|assistant|human|system)\s*[:：])", re.MULTILINE | re.IGNORECASE
)
_INDENT = "    "
_TURN = re.compile(rf"(?:^|{_GAP})({'|'.join(_LABELS.values())}): ?")


def one_prompt(messages: Sequence[Message]) -> str:
    """Render messages as one prompt, which ends where the model's reply begins.

    >>> print(one_prompt([("system", "Be brief."), ("user", "What is six by nine?")]))
    Be brief.
    <BLANKLINE>
    User: What is six by nine?
    <BLANKLINE>
    Assistant:
    """
    texts = [(role, _LIKE_A_LABEL.sub(_INDENT, text)) for role, text in messages]
    turns = [f"{_LABELS[role]}: {text}" if role in _LABELS else text for role, text in texts]
    return _GAP.join([*turns, f"{_LABELS['assistant']}:"])


def messages_of(prompt: str) -> list[Message]:
    """Return the messages of a prompt made by ``one_prompt``, with the indents that it added.

    >>> messages_of(one_prompt([("system", "Be brief."), ("user", "What is six by nine?")]))
    [('system', 'Be brief.'), ('user', 'What is six by nine?')]
    """
    head, *turns = _TURN.split(prompt)
    roles = {label: role for role, label in _LABELS.items()}
    said = [(roles[label], text) for label, text in zip(turns[::2], turns[1::2], strict=True)]
    if said and said[-1] == ("assistant", ""):
        said.pop()
    return [("system", head), *said] if head else said
