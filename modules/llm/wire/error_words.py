"""The words of an endpoint's error: without what it repeats of the request, and whether they are about one prompt."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

MOST_READ = 4_000
"""Characters of an error that are read."""
_MOST_PARTS = 1_000
_MOST_MARKS = 60
_MOST_CLOSING = 6
_REPEATS = frozenset(
    {"input", "inputs", "flagged_input", "messages", "prompt", "request", "request_body", "received", "documents"}
    | {"ctx", "url", "failed_generation", "body"}
)
"""Fields of errors that repeat the request."""
_FILTERS = (
    r"(?<![-/])moderat(?:ion|ed|or)(?!-)|content[_ ]?(?:policy|filter|management)|policy_?violation|responsible[_ ]?ai"
    r"|(?<![-/\w])safety(?:\b(?!-)|_(?:check|block|filter|system|violation))|jailbreak|\bflagged|data_?inspection"
    r"|inappropriate|harmful|guardrail|prohibited[_ ]?content|content exists risk|\bhigh risk\b|敏感|违规|不安全"
    r"|\bnew_sensitive|\bsensitive (?:words?|content|information)\b"
)
"""What filters of contents say, but not the names of models that filter."""
_MODERATED = re.compile(rf"{_FILTERS}|\bpolic(?:y|ies)\b|usage guidelines|审核", re.IGNORECASE)
_OF_A_PROMPT = re.compile(
    rf"{_FILTERS}|\b(?:prompt|input|content|text|request|message|question|query|output|response)s?\b.{{0,80}}?"
    r"\b(?:polic(?:y|ies)|guidelines)\b",
    re.IGNORECASE,
)
_OF_THE_ACCOUNT = re.compile(
    r"\b(?:account|organi[sz]ation|project|workspace|tenant|subscription|api key|access|user)\b[^.]{0,40}?"
    r"\b(?:flagged|terminated|suspended|deactivated|disabled|blocked|banned|denied|restricted|revoked)\b"
    r"|\b(?:iam|identity|access|network|resource|data|privacy|service control|firewall|organi[sz]ation|api key|tenant"
    r"|project)\b[\w'’ -]{0,20}?\bpolic",
    re.IGNORECASE,
)
_MOST_OF_SETUP = 400
"""Characters in which an error says that key, account or model is wrong; behind them it may repeat a prompt."""
_OF_SETUP = {
    401: re.compile(
        r"\bapi[ _-]?key\b[^.]{0,30}?\b(?:not valid|invalid|incorrect|expired|revoked)\b"
        r"|\b(?:invalid|incorrect|expired|wrong|revoked) api[ _-]?key\b",
        re.IGNORECASE,
    ),
    402: re.compile(
        r"\bcredit balance\b|\binsufficient (?:account )?(?:balance|credits?|funds)\b|\bexceeded_current_quota"
        r"|\bout of credits?\b|余额不足|欠费",
        re.IGNORECASE,
    ),
    404: re.compile(
        r"\bmodel (?:\S{1,100} )?(?:(?:does|do) )?not (?:exist|found)\b|\bnot a valid model\b"
        r"|\bno models? (?:is )?loaded\b|\b(?:unknown|invalid) model(?:_name|:| name| id)|\binvalid_model\b"
        r"|\bmodel (?:identifier|id|name) is invalid\b",
        re.IGNORECASE,
    ),
}
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "「": "」", "『": "』"}
_TOKEN = re.compile(r"[A-Za-z0-9_.\-\[\]]*")
_ESCAPED = re.compile(r"\\[nrt]")
_ROLE = re.compile(r"""['"]role['"]\s?:\s?['"]\w{1,20}['"]""")
_NAMES_THEM = re.compile(
    r"(?:support\w*|permitted|allowed|unrecogni[sz]ed|unknown|extra)\W{1,3}(?:(?:the|these|following|request|sampling)\W"
    r"{1,3}){0,3}(?:param\w*|arguments?|fields?|options?|values?)?\W{0,3}$",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title>([^<]{1,200})", re.IGNORECASE)
_UNSEEN = re.compile(r"<(script|style|title)\b.*?(?:</\1>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_TAGS = re.compile(r"<[^<>]*>")
_ARE = re.compile(r"\W{0,3}(?:is|are|both|can|cannot)\b", re.IGNORECASE)

_ALL_IS_WELL = ("", "0", "200", "ok", "success")
"""Codes that report no error."""


class ReportedError(ValueError):
    """An endpoint reports an error within a reply of HTTP status 200; ``args[0]`` is what it reports."""


def error_in(reply: Mapping[str, Any]) -> object:
    """Return the error that a reply, an event of a stream or a choice reports; None or another empty value for none.

    >>> error_in({"choices": [], "code": "DataInspectionFailed", "message": "Unfit."})["message"]
    'Unfit.'
    >>> error_in({"detail": "The engine is dead."})["detail"]  # of FastAPI
    'The engine is dead.'
    >>> error_in({"choices": [{}], "error": {"code": 0, "message": ""}})
    """
    error = reply.get("error")
    if error and not (isinstance(error, Mapping) and not any(error.values())):
        return error
    if reply.get("choices"):
        return None
    status = reply.get("base_resp")  # of MiniMax
    is_bad = isinstance(status, Mapping) and bool(status.get("status_code"))
    is_named = isinstance(reply.get("message"), str) and str(reply.get("code") or "").casefold() not in _ALL_IS_WELL
    is_told = reply.get("detail") and "choices" not in reply
    return reply if is_bad or is_named or is_told else None


def error_in_text(body: bytes) -> object:
    """Return the error that the text of a reply reports, as ``error_in`` does; None also where it is no JSON object."""
    with suppress(ValueError, RecursionError):
        reply = json.loads(body)
        return error_in(reply) if isinstance(reply, dict) else None
    return None


def is_reported(error: BaseException) -> bool:
    """Return whether an error is one that an endpoint reports within a reply, rather than by an HTTP status."""
    if isinstance(error, ValueError):  # LangChain's clients have the same without a class of its own
        return isinstance(error, ReportedError) or (bool(error.args) and isinstance(error.args[0], Mapping))
    return getattr(error, "status_code", None) is None and getattr(error, "body", None) is not None


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error, or the one that a reported error names as its code; None without one."""
    if isinstance(status := getattr(error, "status_code", None), int):
        return status
    code = code_of(error)
    return int(code) if len(code) == 3 and code.isdecimal() else None


def code_of(error: BaseException) -> str:
    """Return the code of an error, else its type, as its endpoint names it; ``""`` without one."""
    named = getattr(error, "code", None) or getattr(error, "type", None)
    if named is None and isinstance(error, ValueError) and error.args and isinstance(told := error.args[0], Mapping):
        named = told.get("code") or told.get("type")
    return str(named or "")


def words_of(error: BaseException) -> str:
    """Return the message of an HTTP client's error: the texts of its body, without those that repeat the request.

    At most ``MOST_READ`` characters; without a body it is the error's own text.
    """
    body = error.args[0] if isinstance(error, ValueError) and error.args else getattr(error, "body", None)
    if not isinstance(body, Mapping | list | tuple):
        return without_tags(str(error)[:MOST_READ])
    said, length = [], 0
    for text in _texts_in(body):
        said.append(text[:MOST_READ])
        length += len(text)
        if length > MOST_READ:
            break
    return ", ".join(said)[:MOST_READ] or str(error)[:MOST_READ]


def without_tags(text: str) -> str:
    """Return an error's text. If it is an HTML page: its visible text, or its title if it has none.

    >>> without_tags("<html><title>502</title><h1>502 Bad Gateway</h1><hr>nginx</html>")
    '502 Bad Gateway nginx'
    """
    if not text.lstrip().startswith("<"):
        return text
    text = text[:MOST_READ]
    title = _TITLE.search(text)
    return " ".join(_TAGS.sub(" ", _UNSEEN.sub(" ", text)).split()) or (title[1].strip() if title else text)


def without_repeats(text: str, body: Mapping[str, Any]) -> str:
    """Return an error's text without what it repeats of a request: quoted passages, and values by their names."""
    return _without_values(_without_passages(text, _sent_in(body)), body)


def is_moderated(text: str) -> bool:
    """Return whether an error, by its words or codes, is of a filter of contents."""
    return bool(_MODERATED.search(text))


def is_about_one_prompt(error: BaseException) -> bool:
    """Return whether an error refuses what one prompt says, rather than a key, an account or a model.

    >>> is_about_one_prompt(ValueError("Your input was flagged by moderation"))
    True
    >>> is_about_one_prompt(ValueError("Your account was flagged"))
    False
    """
    said = words_of(error)
    return bool(_OF_A_PROMPT.search(said)) and not _OF_THE_ACCOUNT.search(said)


def setup_status(error: BaseException) -> int | None:
    """Return the HTTP status that an error should have by its words: 401 for the key, 402 for the account, 404 for the
    model; None for others. Many hosts say so with 400, 422 or 429.

    >>> setup_status(ValueError("Model Not Exist")), setup_status(ValueError("The prompt is too long"))
    (404, None)
    """
    said = words_of(error)[:_MOST_OF_SETUP]
    return next((status for status, words in _OF_SETUP.items() if words.search(said)), None)


def _texts_in(body: object) -> Iterator[str]:
    waiting: deque[tuple[str, object]] = deque([("", body)])
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        name, part = waiting.popleft()
        if isinstance(part, str) and part[:1] in ("{", "["):  # an error in an error
            with suppress(ValueError, RecursionError):
                part = json.loads(part)
        if name == "loc" and isinstance(part, list | tuple):
            yield f"'loc': {list(part[:20])!r}"
        elif isinstance(part, Mapping):
            yield from (each for each in map(str, part) if _MODERATED.search(each[:100]))
            inner = [(str(key), value) for key, value in part.items() if key not in _REPEATS]
            waiting.extendleft(reversed(inner))
        elif isinstance(part, list | tuple):
            waiting.extendleft((name, each) for each in reversed(part[:_MOST_PARTS]))
        elif isinstance(part, str):
            yield f"{name}: {part}" if name else part


def _sent_in(body: Mapping[str, Any]) -> list[str]:
    """Return the texts of a request, as ``_plain`` writes them."""
    messages, texts = body.get("messages"), body.get("input")
    sent = [each.get("content") for each in messages if isinstance(each, Mapping)] if isinstance(messages, list) else []
    sent += texts if isinstance(texts, list) else [texts]
    return [_plain(str(each)).lower() for each in (*sent, body.get("prompt")) if each]


def _plain(text: str) -> str:
    return " ".join(_ESCAPED.sub(" ", text).replace("\\", "").split())


def _without_passages(text: str, sent: list[str]) -> str:
    """Return a text without quoted passages of what was sent, which may hold quotation marks, or be cut short."""
    text = _plain(text)
    if not sent:
        return text
    everything = "\n".join(sent)
    for each in sent:
        if 12 <= len(each) < len(text) and (at := text.lower().find(each)) >= 0:
            text = f"{text[:at]}{text[at + len(each) :]}"
    kept, at = [], 0
    for opening in [place for place, each in enumerate(text) if each in _CLOSING][:_MOST_MARKS]:
        if opening < at:
            continue
        ends = _ends(text, opening)
        end = next((each for each in reversed(ends) if _is_passage(text[opening + 1 : each], everything)), 0)
        if end:
            kept.append(text[at : opening + 1])
            at = end
    return "".join(kept) + text[at:]


def _ends(text: str, opening: int) -> list[int]:
    """Return where a quotation may end: at one of the next marks."""
    ends: list[int] = []
    place, mark = opening, _CLOSING[text[opening]]
    while len(ends) < _MOST_CLOSING and (place := text.find(mark, place + 1)) >= 0:
        ends.append(place)
    return ends


def _is_passage(quoted: str, everything: str) -> bool:
    quoted = quoted.strip().rstrip(".…").strip().lower()
    return len(quoted) >= 4 and not _TOKEN.fullmatch(quoted) and quoted in everything


def _without_values(text: str, body: Mapping[str, Any]) -> str:
    """Return a text without parameters that are merely repeated with their values: two or more, or one in braces."""
    text = _ROLE.sub("", text)
    names = [re.escape(name[:100]) for name in body if name not in ("model", "messages", "prompt", "input")]
    if not names:
        return text
    pair = re.compile(
        rf"""(?<!\w)['"]?({"|".join(names)})['"]?\s?[:=]\s?(?:-?\d[\d.]{{0,20}}|true\b|false\b|null\b|none\b|['"\[{{(])""",
        re.IGNORECASE,
    )
    found = list(pair.finditer(text))
    is_in_braces = bool(found) and text[: found[0].start()].rstrip()[-1:] == "{"
    if not found or (len({each[1].lower() for each in found}) < 2 and not is_in_braces):
        return text
    before = text[max(0, found[0].start() - 80) : found[0].start()]
    if _NAMES_THEM.search(before.rstrip(" {[(")) or _ARE.match(text, found[-1].end()):
        return text
    return pair.sub("", text)
