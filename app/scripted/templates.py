"""Templates of judgetree's prompts, which recognise a prompt and return its fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from ...modules.calls.messages import Message

QUERY = "FIELDqueryFIELD"
"""Placeholder of the query in the messages that ``template_of`` takes."""

Script = TypeVar("Script")


class PromptMismatch(ValueError):
    """A system message of judgetree with a user message that does not follow its template."""


class Template(NamedTuple):
    """A system message, and the pattern of the user message below it."""

    system: str
    user: re.Pattern[str]
    built_by: str
    """Module that builds such prompts."""


def template_of(messages: Sequence[Message], groups: Mapping[str, str], *, built_by: str) -> Template:
    """Make a template from messages with placeholders; ``groups`` gives the regular expression of each placeholder.

    Later occurrences of ``QUERY`` must repeat the first.
    """
    (_, system), (_, user) = messages
    pattern = re.escape(user)
    for placeholder, group in groups.items():
        pattern = pattern.replace(re.escape(placeholder), group, 1)
    return Template(system, re.compile(pattern.replace(QUERY, "(?P=query)"), re.DOTALL), built_by)


def find_script(
    scripts: Sequence[tuple[Template, Script]], messages: Sequence[Message]
) -> tuple[Script, dict[str, str]] | None:
    """Find the first script whose template the prompt follows; returns it with the fields of the first user message.

    Later messages, such as repair retries of the judge, are ignored. Returns None for an unknown system message.

    Raises:
        PromptMismatch: The system message is known, but the user message follows none of its templates.
    """
    system = next((text for role, text in messages if role == "system"), "")
    user = next((text for role, text in messages if role == "user"), "")
    known = [(template, script) for template, script in scripts if template.system == system]
    for template, script in known:
        if match := template.user.fullmatch(user):
            return script, match.groupdict()
    if known:
        raise PromptMismatch(
            f"The user message does not follow the template of its system message: {user[:80]!r}. "
            f"Build it with the functions of {known[0][0].built_by}."
        )
    return None
