"""Prompts as data: what a prompt consists of, and prompts of one's own in place of judgetree's."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from .messages import Message, version_of
from .tokens import message_tokens

Example = tuple[str, str]
"""The user's message of a few-shot example, and the model's reply."""

_BRACES = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The texts of one kind of model call.

    ``{word}`` in ``user`` is a placeholder, and ``{{word}}`` stands for the text ``{word}``; other braces, and those of
    ``system`` and ``examples``, are sent as they are.

    >>> greeting = Prompt(name="greeting", system="Be brief.", user="Greet {name}.", examples=(("Greet Bo.", "Hi Bo"),))
    >>> greeting.messages(name="{name}")[-1]
    ('user', 'Greet {name}.')
    >>> greeting.placeholders
    ('name',)

    Examples are sent in order; with ``max_prompt_tokens``, as many as fit beside the other messages of a call.
    """

    name: str
    system: str
    """The system message; ``""`` sends none."""
    user: str
    """Template of the last message."""
    examples: tuple[Example, ...] = ()
    """Few-shot examples, sent as messages between system message and last message."""
    max_prompt_tokens: int | None = None
    """Estimated tokens of the whole prompt above which the last examples are left out; None sends all examples."""
    about: str = field(default="", compare=False)
    """What the call asks for, and the form that its reply must have; one line."""
    is_json: bool = field(default=False, compare=False)
    """Whether the reply is read as JSON."""

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Placeholders in ``user``, each once, in order."""
        return tuple(dict.fromkeys(word for _, word in _parts(self.user) if word))

    def messages(self, **values: str) -> list[Message]:
        """Return the messages of a call, with a value for each placeholder; braces in values are plain text.

        Raises:
            KeyError: A placeholder has no value.
        """
        last: Message = ("user", "".join(values[word] if word else text for text, word in _parts(self.user)))
        first: list[Message] = [("system", self.system)] if self.system else []
        return [*first, *self._fitting_examples([*first, last]), last]

    def _fitting_examples(self, others: Sequence[Message]) -> Iterator[Message]:
        left = math.inf if self.max_prompt_tokens is None else self.max_prompt_tokens - message_tokens(others)
        for asked, replied in self.examples:
            pair: tuple[Message, Message] = (("user", asked), ("assistant", replied))
            left -= 0 if left == math.inf else message_tokens(pair)
            if left < 0:
                return
            yield from pair

    def to_document(self) -> dict[str, object]:
        """Return the texts as plain data: ``system``, ``user``, ``examples`` and, if there is one, their limit."""
        examples = [{"user": asked, "assistant": replied} for asked, replied in self.examples]
        limit = {} if self.max_prompt_tokens is None else {"max_prompt_tokens": self.max_prompt_tokens}
        return {"system": self.system, "user": self.user, "examples": examples, **limit}

    @property
    def version(self) -> str:
        """Eight hexadecimal digits that change whenever one of the texts does."""
        return version_of(json.dumps(self.to_document()))


@lru_cache(maxsize=1024)
def _parts(template: str) -> tuple[tuple[str, str], ...]:
    """Split a template into (text, "") and ("", placeholder)."""
    parts: list[tuple[str, str]] = []
    end = 0
    for match in _BRACES.finditer(template):
        parts.append((template[end : match.start()], ""))
        parts.append((f"{{{match[1]}}}", "") if match[1] else ("", match[2]))
        end = match.end()
    return tuple(part for part in (*parts, (template[end:], "")) if part != ("", ""))


@dataclass(frozen=True, kw_only=True)
class PromptGroup:
    """Judgetree's own prompts that share one version in fingerprints."""

    prompts: tuple[Prompt, ...]
    version: str
    """Version of the group, with all that the code adds to these prompts."""


class Prompts(Mapping[str, Prompt]):
    """Prompts of one's own, by the names of those that they replace; all others are judgetree's.

    ``load_prompts`` makes and checks them.

    >>> mine = Prompts([Prompt(name="reader", system="Answer.", user="{query} {evidence}")])
    >>> sorted(mine), len(Prompts())
    (['reader'], 0)
    """

    def __init__(self, own: Iterable[Prompt] = (), *, file: str = "") -> None:
        self.file = file
        """The file that they were read from; empty without one."""
        self._own: Mapping[str, Prompt] = MappingProxyType({prompt.name: prompt for prompt in own})

    def __getitem__(self, name: str) -> Prompt:
        return self._own[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)

    def __hash__(self) -> int:
        return hash(frozenset(self._own.values()))

    def __repr__(self) -> str:
        return f"Prompts({', '.join(self._own)})"

    def messages(self, prompt: Prompt, **values: str) -> list[Message]:
        """Return the messages of a call by the own prompt of that name, else by ``prompt``."""
        return self._own.get(prompt.name, prompt).messages(**values)

    def version(self, group: PromptGroup) -> str:
        """Return the version of a group for fingerprints; own prompts outside of the group do not change it."""
        changed = [own for each in group.prompts if (own := self._own.get(each.name, each)) != each]
        if not changed:
            return group.version
        return version_of(group.version, *(f"{each.name} {each.version}" for each in changed))

    @property
    def digest(self) -> str:
        """Version of all own prompts together; ``""`` without any."""
        return version_of(*sorted(f"{each.name} {each.version}" for each in self.values())) if self._own else ""

    def to_document(self) -> dict[str, dict[str, object]]:
        """Return the texts of the own prompts by name, as plain data that ``load_prompts`` reads."""
        return {name: prompt.to_document() for name, prompt in self._own.items()}


DEFAULT_PROMPTS = Prompts()
"""No prompt of one's own."""
