"""Training examples: what stands in one, and its two forms as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ...modules.calls.messages import Message
from ..datasets.questions import JsonScalar

TrainingFormat = Literal["messages", "jsonl"]
"""messages: chats, as lists of role and content. jsonl: texts, with the fields of each kind beside them."""
LeftOut = Literal[
    "gold unknown",
    "no sub-question that led to gold",
    "did not lead to gold",
    "no gold answer",
    "evidence incomplete",
    "no evidence",
    "the same again",
    "tree missing",
]
"""Why something gives no example."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where an example comes from."""

    run: str
    """Id of the run, as in its manifest."""
    thread: str
    """Root thread of the tree."""
    node: str
    """Thread of the query within the tree."""
    chunk: str = ""
    """Id of the chunk; ``""`` for an example of a whole query."""
    system: str
    question_id: str
    split: str
    """"train", or "unknown" where the data set's name does not say so."""
    gold: str
    """What says that it is right: "supporting", "label", "answer"."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One training example: a prompt with its reply, or with a better and a worse reply."""

    prompt: Sequence[Message]
    reply: str
    """The right reply; of a preference, the better one."""
    rejected: str | None = None
    """The worse reply of a preference; None otherwise."""
    fields: Mapping[str, JsonScalar] = field(default_factory=dict)
    """What the prompt is made of, by name."""
    origin: Origin

    @property
    def content(self) -> tuple[object, ...]:
        """All that is learned from it, which tells examples apart."""
        return (*self.prompt, self.reply, self.rejected)

    def to_document(self, form: TrainingFormat) -> dict[str, object]:
        """Return the example as plain data: columns of TRL's data set formats, and the origin.

        As messages an example is a chat (``messages``), a preference a chat with two replies (``prompt``, ``chosen``,
        ``rejected``). As jsonl these are texts, with a ``completion`` in place of the last message, beside the fields.
        """
        origin = vars(self.origin)
        if form == "messages":
            return {**self._chats(), **origin}
        prompt = "\n\n".join(text for _, text in self.prompt)
        replies = (
            {"completion": self.reply} if self.rejected is None else {"chosen": self.reply, "rejected": self.rejected}
        )
        return {"prompt": prompt, **replies, **self.fields, **origin}

    def _chats(self) -> dict[str, object]:
        prompt = [{"role": role, "content": text} for role, text in self.prompt]
        if self.rejected is None:
            return {"messages": [*prompt, *_reply(self.reply)]}
        return {"prompt": prompt, "chosen": _reply(self.reply), "rejected": _reply(self.rejected)}


def _reply(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]
