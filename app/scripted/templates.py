"""Templates of judgetree's prompts, which recognise a prompt and return its fields."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ...modules.calls.messages import Message
from ...modules.calls.prompts import DEFAULT_PROMPTS, Prompts
from ...modules.reader.answer_forms import without_form

QUERY = "FIELDqueryFIELD"
"""Placeholder of the query in the messages that ``template_of`` takes."""

Script = TypeVar("Script")


class PromptMismatch(ValueError):
    """A system message of judgetree with a user message that does not follow its template."""


class Template(NamedTuple):
    """The messages before that of the user, system message and examples, and the pattern of the user's message."""

    opening: tuple[Message, ...]
    user: re.Pattern[str]
    built_by: str
    """Module that builds such prompts."""

    def opens(self, messages: Sequence[Message]) -> int:
        """Return the number of messages that are the system message and the first examples; -1 if these differ."""
        first = 1 if self.opening and self.opening[0][0] == "system" else 0
        pairs = zip(self.opening, messages, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        return same - (same - first) % 2 if same >= first else -1


def template_of(messages: Sequence[Message], groups: Mapping[str, str], *, built_by: str) -> Template:
    """Make a template from messages with placeholders; ``groups`` gives the regular expression of each placeholder.

    Later occurrences of a placeholder must repeat the first if its group has a name.
    """
    *opening, (_, user) = messages
    pattern = re.escape(user)
    for placeholder, group in groups.items():
        pattern = pattern.replace(re.escape(placeholder), group, 1)
        name = re.match(r"\(\?P<(\w+)>", group)
        pattern = pattern.replace(re.escape(placeholder), f"(?P={name[1]})" if name else group)
    return Template(tuple(opening), re.compile(pattern, re.DOTALL), built_by)


def scripts_for(build: Callable[[Prompts], Sequence[Script]], prompts: Prompts) -> Sequence[Script]:
    """Build the scripts of prompts of one's own, if there are any, and of judgetree's."""
    return [*build(prompts), *build(DEFAULT_PROMPTS)] if prompts else build(DEFAULT_PROMPTS)


def find_script(
    scripts: Sequence[tuple[Template, Script]], messages: Sequence[Message]
) -> tuple[Script, dict[str, str]] | None:
    """Find the script whose template the prompt follows, that of the most examples first; returns it with the fields.

    A prompt may lack the last examples. Later messages, such as repair retries of the judge, are ignored. Returns None
    for an unknown system message.

    Raises:
        PromptMismatch: The system message is known, but the user message follows none of its templates.
    """
    messages = without_form(messages)
    opened = ((template.opens(messages), template, script) for template, script in scripts)
    known = [each for each in opened if each[0] >= 0]
    for length, template, script in sorted(known, key=lambda each: -each[0]):
        role, user = messages[length] if len(messages) > length else ("", "")
        if role == "user" and (match := template.user.fullmatch(user)):
            return script, match.groupdict()
    if builders := [template.built_by for _, template, _ in known if template.opening]:
        user = next((text for role, text in messages if role == "user"), "")
        raise PromptMismatch(
            f"The user message does not follow the template of its system message: {user[:80]!r}. "
            f"Build it with the functions of {builders[0]}, or start the server with the --prompts of your own."
        )
    return None
