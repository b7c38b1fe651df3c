"""Prompt of Search-R1, whose thoughts, searches and answers stand between tags, and the parser of its replies.

The protocol is that of Jin et al. (2025, arXiv 2503.09516, algorithm 1 and table 1); the words are judgetree's, as
in ``multistep_prompts``. The parser accepts any reply and raises nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..calls.messages import Message
from ..calls.prompts import DEFAULT_PROMPTS, Prompt, Prompts
from .multistep_prompts import Observed, one_line

SEARCH_END, ANSWER_END, INFORMATION = "</search>", "</answer>", "<information>"
STOPS = (SEARCH_END, ANSWER_END, INFORMATION)
"""Texts at which a reply is cut: the end of its action, and results of the search that a model would invent."""
NO_INFORMATION = "(nothing found)"

SEARCH_R1_SYSTEM = f"""\
You answer a question by searching a collection of passages. You are given your searches so far, each with what it found
between {INFORMATION} and </information>. The question itself was searched for first. Reply with a thought and one
action, and nothing else:
- <think> in one or two sentences, what the passages tell and what must still be found out </think>
- <search> query {SEARCH_END} to search for it. The query must be understood by itself: name things in full, use no
  pronoun, and do not repeat an earlier search.
- <answer> answer {ANSWER_END} in place of a search, as soon as the answer follows, or searching on is of no use.
Do not write what a search finds. Write in the language of the question; keep the tags as they are."""

SEARCH_R1_PROMPT = Prompt(
    name="search_r1",
    about=f"search_r1: <think> … </think>, then <search> … {SEARCH_END} or <answer> … {ANSWER_END}",
    system=SEARCH_R1_SYSTEM,
    user="Question: {query}\n\n{observed}\n\nQuestion: {query}",
)


@dataclass(frozen=True, kw_only=True)
class TaggedStep:
    """A reply between tags; both texts are one line of at most ``LONGEST_QUERY`` characters."""

    text: str
    """The thought; without one, what the reply says."""
    query: str
    """The search query; ``""`` where the reply answers, or does neither."""


def search_r1_messages(query: str, observed: Sequence[Observed], prompts: Prompts = DEFAULT_PROMPTS) -> list[Message]:
    """Ask for the next thought and action after the searches in ``observed``, at least one (Search-R1)."""
    shown = "\n\n".join(map(_turn, observed))
    return prompts.messages(SEARCH_R1_PROMPT, query=query, observed=shown)


def _turn(search: Observed) -> str:
    thought = f"<think> {_without_tags(search.thought)} </think>\n" if search.thought else ""
    found = _without_tags(search.passages) or NO_INFORMATION
    return f"{thought}<search> {_without_tags(search.query)} {SEARCH_END}\n{INFORMATION}\n{found}\n</information>"


_NAMES = ("think", "search", "information", "answer")
_TAG = re.compile(rf"<\s{{0,9}}(?P<closing>/?)\s{{0,9}}(?P<name>{'|'.join(_NAMES)})\s{{0,9}}>", re.IGNORECASE)
_BEGINNINGS = "|".join(name[:end] for name in _NAMES for end in range(len(name), 0, -1))
_CUT_TAG = re.compile(rf"<\s{{0,9}}/?\s{{0,9}}(?:{_BEGINNINGS})?\s{{0,9}}\Z", re.IGNORECASE)
_FENCE = re.compile(r"```\w{0,20}")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_AROUND = " \t\r\n\"'“”`*_"


def _without_tags(text: str) -> str:
    """Spell out the tags of a text that is shown between tags, so that it cannot end its part."""
    return _TAG.sub(lambda tag: f"&lt;{tag[0][1:]}", text)


def parse_tagged(reply: str) -> TaggedStep:
    """Return thought and query of a reply; its first action counts, and what stands behind it is dropped.

    A tag may be of any case and have blanks. One without an end holds what stands before the next tag, or all that is
    left, since a reply ends before its closing tag (``STOPS``), or is cut off. Tags of an action that stand in a closed
    thought are text, and tags in code too, unless there are no others.

    >>> parse_tagged("<think>The class is missing.</think>\\n<search>class of KS-1</search><information>")
    TaggedStep(text='The class is missing.', query='class of KS-1')
    >>> parse_tagged("<think>It is Delta.</think> <answer>Delta").query
    ''
    """
    reply = _CUT_TAG.sub("", reply)
    shown = _CODE.sub(lambda code: " " * len(code[0]), reply)
    return _parsed(shown, reply) or _parsed(reply, reply) or TaggedStep(text=_thought(reply), query="")


def _parsed(shown: str, reply: str) -> TaggedStep | None:
    """Read the first action whose tags stand in ``shown``, which has the length of ``reply``; None without one."""
    tags = list(_TAG.finditer(shown))
    ends = [*(tag.start() for tag in tags), len(reply)][1:]
    thinking = _closed_thought(tags)
    for tag, end in zip(tags, ends, strict=True):
        name, content = tag["name"].lower(), reply[tag.end() : end].strip(_AROUND)
        if tag["closing"] or tag.start() in thinking:
            continue
        if name == "information":
            return None
        if name != "think" and content:
            thought = _thought(reply[: tag.start()]) or one_line(content)
            return TaggedStep(text=thought, query=one_line(content) if name == "search" else "")
    return None


def _closed_thought(tags: Sequence[re.Match[str]]) -> range:
    """Return the range of the first closed thought, empty without one; it starts at 0 where no tag opens it."""
    opened: int | None = None
    for tag in tags:
        if tag["name"].lower() != "think":
            continue
        if tag["closing"]:
            return range(opened or 0, tag.end())
        opened = tag.start() if opened is None else opened
    return range(0)


def _thought(text: str) -> str:
    return one_line(_FENCE.sub(" ", _TAG.sub(" ", text)).strip(_AROUND))
