"""Parsing of the stand-alone question in a model's reply.

A rewrite is searched for, shown and saved. A reply that is not certainly a single question is therefore refused, and
the user's own words are searched for. The time of parsing is bounded by the limit of the reply.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ..calls.tokens import is_longer, text_tokens
from ..reader.evidence import foreign_addresses
from ..reader.refusals import is_refusal

_ROOM_FOR_CHATTER = 3
"""Longest reply that is parsed, in multiples of the limit of a rewrite."""

_OF_A_REWRITE = r"(?:rewritten|re-?phrased|re-?formulated|re-?worded|condensed|stand-?alone|self-?contained|new|final)"
_NOUN = r"(?:question|query|version|form|rewrite|rewriting|output|result|answer)"
_LABEL = (
    rf"(?:{_OF_A_REWRITE}[\s-]+)*(?:{_NOUN}|q)"
    r"|(?:改写|重写|独立|完整|新)?(?:后的?|的)?(?:独立|完整)?(?:问题|提问|问句|查询)(?:是|为|如下)?|(?:改写|重写)(?:后|为|如下|结果)?"
)
_TAIL = r"(?:\s*(?:,|\b(?:that|which|as|is|in|so|without|would|could|can|rewritten|standing)\b)[^:：\n?？]{0,60})?"
_OPENING = (
    r"(?:sure|certainly|of course|okay|ok|alright|absolutely|great|yes|no problem|got it|done|understood|noted|"
    r"thanks|thank you|none|n/a|好的|当然|没问题|可以|明白|收到|完成|谢谢)"
    r"(?:可以|了)?(?![\w-])"
)
_PREFACE = re.compile(
    rf"(?:{_OPENING}[\s!,.，。！、]*)?"
    rf"(?:(?:here(?:'s|’s| is| you go)|this is|below is|以下是|这是|下面是)[^:：\n]{{0,80}}?)?"
    rf"(?:(?:the|my|your|a|one|您的|你的)\s*)?(?:{_LABEL}){_TAIL}\s*[:：]\s*",
    re.IGNORECASE,
)
_BARE_OPENING = re.compile(rf"{_OPENING}\s*(?:[!,.:，。！：]+\s*|$)", re.IGNORECASE)
_AFTERWORD = re.compile(
    r"\W*(?:let me know|i hope|hope this|feel free|note\b|explanation|this (?:question|version|rewrite)"
    r"|i (?:have )?(?:re|changed|kept|made|added|used)|in this (?:question|version)|reasoning|please let|if you|"
    r"注[:：意]|说明|解释|希望|如果|此问题|这个问题|该问题|我(?:已|将|把))",
    re.IGNORECASE,
)
_REMARK = re.compile(r"[(（\[](?:note|i |where |rewritten|replaced|here|注|说明|已将|将|其中)", re.IGNORECASE)
_FENCE = re.compile(r"^```\w*\s*$")
_BULLET = re.compile(r"^(?:[-*•>]|\d{1,2}[.)])\s+")
_MOST_LAYERS = 50
"""Bullets, prefaces and quotes around one another that are removed."""
_QUOTES = ("**", '"', "'", "“”", "‘’", "「」", "『』", "«»", "`", "*", "_")


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """A stand-alone question, or the problem with it."""

    text: str
    """The question; ``""`` if the reply cannot be used."""
    problem: str = ""
    """The reason, as the end of a sentence about the rewrite; ``""`` if it can be used."""


def read_rewrite(reply: str, query: str, *, max_tokens: int, cut_off: bool = False) -> Rewrite:
    """Parse the single question in a reply, of at most ``max_tokens`` tokens; a reply that was cut off holds none.

    ``query`` is the question to be rewritten. Only one of several lines may have a rewrite of several lines.
    """
    if cut_off or is_longer(reply, _ROOM_FOR_CHATTER * max_tokens):
        return Rewrite(text="", problem=f"it is longer than {max_tokens} tokens")
    has_lines = "\n" in query.strip()
    lines = _without_chatter(_from_json(reply.strip()), keep_all=has_lines)
    if not lines or is_refusal(lines[0]):
        nothing = "it holds no question" if reply.strip() else "it is empty"
        return Rewrite(text="", problem="the model refused" if lines else nothing)
    if len(lines) > 1 and not has_lines:
        questions = [line for line in lines if line.endswith(("?", "？"))]
        if len(questions) != 1:
            return Rewrite(text="", problem=f"it has {len(lines)} lines where one question was asked for")
        lines = questions
    text = "\n".join(lines)
    if is_longer(text, max_tokens):
        return Rewrite(text="", problem=f"it is longer than {max_tokens} tokens ({text_tokens(text)})")
    if foreign_addresses(text, query):
        return Rewrite(text="", problem="it holds an address that the question does not")
    return Rewrite(text=text)


def _from_json(reply: str) -> str:
    """Return the only text of a JSON object, since some models always reply in JSON; else the reply."""
    if not reply.startswith("{") or not reply.endswith("}"):
        return reply
    try:
        found = json.loads(reply)
    except (ValueError, RecursionError):
        return reply
    texts = [value for value in found.values() if isinstance(value, str)] if isinstance(found, dict) else []
    return texts[0] if len(texts) == 1 else reply


def _without_chatter(reply: str, *, keep_all: bool) -> list[str]:
    """Return the lines of the question; ``keep_all`` keeps lines that look like an afterword."""
    lines: list[str] = []
    for raw in reply.splitlines():
        line = raw.strip()
        if not line or _FENCE.match(line):
            continue
        if lines and not keep_all and _AFTERWORD.match(line):
            break
        if text := _unwrapped(line):
            lines.append(text)
    return lines


def _unwrapped(line: str) -> str:
    """Remove bullet, preface, remark and quotes from a line; ``""`` if nothing is left."""
    text = line
    for _ in range(_MOST_LAYERS):
        before = text
        text = _BULLET.sub("", text)
        for opening in (_PREFACE, _BARE_OPENING):
            if (match := opening.match(_without_marks(text))) is not None:
                text = _without_marks(text)[match.end() :]
        text = _without_remark(_unquoted(text.strip())).strip()
        if text == before:
            break
    return text


def _without_remark(text: str) -> str:
    """Remove a remark in brackets from the end of a text; there are no parentheses in it."""
    if not text.endswith((")", "）", "]")):
        return text
    last = max(0, *(text.rfind(each, 0, -1) for each in "()（）"))
    remark = _REMARK.search(text, last)
    return text[: remark.start()] if remark else text


def _without_marks(text: str) -> str:
    return text.replace("**", "") if text.startswith("**") else text


def _unquoted(text: str) -> str:
    for marks in _QUOTES:
        opening, closing = (marks[0], marks[1]) if marks[0] != marks[-1] else (marks, marks)
        inner = text[len(opening) : len(text) - len(closing)]
        if (
            len(text) > len(opening) + len(closing)
            and text.startswith(opening)
            and text.endswith(closing)
            and not (opening in inner or closing in inner)
        ):
            return inner.strip()
    return text
