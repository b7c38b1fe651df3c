"""What an endpoint refuses by name: the parts of a request that its error names as unsupported.

Hosts say so in words of their own, with any of several HTTP statuses. A part counts where the error's ``param``, or a
sentence of its message, names it as refused, and the request had it. What is merely mentioned does not count.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .error_words import MOST_READ, is_moderated, status_of, without_repeats, words_of

STATUSES = frozenset({400, 403, 404, 405, 415, 422, 500, 501})
"""HTTP statuses with which endpoints refuse a part of a request; others are about key, account or load."""
Refused = Mapping[str, str]
"""Refused parts of a request, with what is sent in their place; ``""`` for nothing."""
LOGPROBS = "logprobs"
STREAM, WHOLE = "stream", "whole replies"
"""Parts that are no parameters: a stream, refused as such, and a reply that is none."""
STREAM_KEY = "the parameter stream"
"""Refused though it is false."""
SYSTEM, DEVELOPER = "the role system", "the role developer"
SCHEMA, OBJECT = "json_schema", "json_object"
_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

_BAD_JSON = "json_validate_failed"
"""Error code of Groq for a reply that is no valid JSON, which comes as an HTTP 400."""
_TOLD = "refused_by_name"
_BY_CODE = frozenset({"unsupported_parameter", "unsupported_value"})
"""Error codes that leave no doubt."""
_ESSENTIAL = frozenset({"model", "messages", "prompt", "input"})
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[。；;]")
_CONDITION = re.compile(r"\b(?:when|if|while|unless)\b", re.IGNORECASE)
_PLACE = re.compile(r"loc\\{0,3}['\"]: ?[\[(]([^\])]{0,200})[\])]")
"""The place of a fault as pydantic gives it, which vLLM, Mistral and others pass on."""
_UNSUPPORTED = re.compile(
    r"unsupported|unrecogni[sz]ed|\b(?:unknown|unavailable|forbidden|deprecated|disabled|mandatory)\b"
    r"|\bunexpected\b(?! (?:end|eof|error|exception|token|char|close|closing|disconnect|response|failure|status)\b)"
    r"|extraneous|\bextra (?:input|field|param)|cannot find|must be verified|不支持|不可用|未知"
    r"|(?:\bnot|n['’]t|\bcannot|\bonly)\b.{0,24}?(?:support|permit|allow|accept|enabl|availabl|implement|recogni|appl(?:y|ic))",
    re.IGNORECASE,
)
_UNSUPPORTED_BY_SERVER = re.compile(
    r"unsupported|unrecogni[sz]ed|\b(?:unknown|unexpected) (?:keyword|param|argument|field|variant|option|role)"
    r"|\bextra (?:input|field|param)|不支持"
    r"|(?:\bnot|n['’]t|\bcannot|\bonly)\b.{0,24}?(?:support|permit|allow|accept|implement|recogni|appl(?:y|ic))",
    re.IGNORECASE,
)
"""The same behind the status of a server that failed, which tells of much else."""
_WRONG = re.compile(
    r"\binvalid\b|\bmust\b|\bshould\b|\bonly\b|\bup to\b|\bbetween\b|\brange\b|not one of|incompatible|greater than"
    r"|restricted|[<>]=|illegal|\bnot (?:a )?valid\b|非法|无效|不合法",
    re.IGNORECASE,
)
"""Words against a value; the endpoint's own value is taken in its place."""
_TOO_MUCH = re.compile(
    r"\btoo (?:large|many|big|long|small|high|low)|greater|exceed|\bat (?:most|least)\b|maximum|minimum|[<>]|\bless\b"
    r"|\bmore than\b|\brange\b|\bbetween\b|context length",
    re.IGNORECASE,
)
_ONLY_ONE = re.compile(r"\bonly\b.{0,30}?(?<![\d.])1(?:\.0)?(?![\d.])", re.IGNORECASE)
_ROLE = re.compile(
    r"\b(?:system|developer)\W{0,4}(?:role|message|prompt|instruction|is not one of|as an input)"
    r"|\broles?\b.{0,60}?\b(?:system|developer)\b|\bvariant\W{1,4}(?:system|developer)\b",
    re.IGNORECASE,
)
_ROLES = re.compile(
    r"\broles?\b.{0,60}?\balternat|\b(?:user|assistant)\b.{0,40}?\broles? (?:are|is)\b.{0,20}?support"
    r"|\bsuccessive (?:user|assistant)\b|\bunexpected role\b|\balternat\w*\b.{0,40}?\b(?:user|assistant|model)\b"
    r"|\brole\b.{0,30}?\b(?:must|should|can only|may only) be\b(?!.{0,60}?\bsystem\b).{0,40}?\b(?:user|assistant)\b"
    r"|\bfirst (?:message|turn|role)\b.{0,30}?\buser\b|\b(?:start|begin)s? with\b.{0,20}?\buser\b"
    r"|(?:\bno|\bnot have an?|n['’]t have an?|\bwithout an?) (?:system|developer) role\b",
    re.IGNORECASE,
)
"""What chat templates say that know the roles user and assistant alone."""
_KIND = re.compile(r"json_(?:schema|object)|json schema|structured|grammar|format\W{1,4}(?:of )?type\b", re.IGNORECASE)
"""Words against a kind of JSON rather than against all of ``response_format``."""
_NUMBER = re.compile(r"\d")
_SHOWN_VALUE = re.compile(r"\s?=")
"""What follows the name of a parameter that a crash lists."""
_NEEDS_STREAM = re.compile(
    r"\bnon-?stream|\bonly supports? (?:the )?stream|\brequires? (?:the )?stream|\bstream(?:ing)? (?:mode )?is required"
    r"|\bmust (?:be |use |set )?(?:the )?stream|\benable the stream|\bstream\W{1,3}true\b",
    re.IGNORECASE,
)
_THINKING = r"(?:enable[_ ]?)?think(?:ing)?|reasoning(?:[_ ]?effort)?|chat[_ ]?template[_ ]?kwargs"
_NAMES = {
    LOGPROBS: r"(?:top[_ ]?)?log[_ ]?prob(?:s|abilit(?:y|ies))?|top_n_tokens",
    "stop": r"stop(?:[_ ]?sequences?)?",
    STREAM: r"stream(?:s|ed|ing)?(?! ?options)",
    "response_format": r"(?:response|structured)[_ ]?(?:formats?|schema|outputs?)|json[_ ]?(?:schema|object|mode)"
    r"|guided[_ ]?json|grammar",
    "chat_template_kwargs": _THINKING,
    "enable_thinking": _THINKING,
    "reasoning_effort": _THINKING,
}
"""Other words for a parameter, besides its name with or without underscores."""


@contextmanager
def noting_refusals(body: Mapping[str, Any]) -> Iterator[None]:
    """Let an error on a request tell what of the request it refuses by name; see ``refused_by``."""
    try:
        yield
    except Exception as error:
        if (status := status_of(error)) in STATUSES and failed_json_in(error) is None:
            is_named = str(getattr(error, "code", "")) in _BY_CODE
            vars(error)[_TOLD] = refused_in(
                words_of(error), body, param=_param_of(error), is_server_error=status >= 500, is_named=is_named
            )
        raise


def failed_json_in(error: BaseException) -> str | None:
    """Return the reply that an endpoint refused as invalid JSON, ``""`` if it quotes none; None for other errors."""
    body = getattr(error, "body", None)
    told = body if isinstance(body, Mapping) else {}
    if "failed_generation" not in told and _BAD_JSON not in str(error)[:MOST_READ]:
        return None
    return str(told.get("failed_generation") or "")


def refused_by(error: BaseException) -> Refused:
    """Return what an error refuses by name, as ``noting_refusals`` has noted it; empty for any other error."""
    refused: Refused = vars(error).get(_TOLD, {})
    return refused


def refused_in(
    text: str, body: Mapping[str, Any], *, param: str = "", is_server_error: bool = False, is_named: bool = False
) -> Refused:
    """Return the parts of a request that an error names as refused, with what to send in their place.

    What the error repeats of the request names nothing, and the error of a filter of contents refuses no part.

    Args:
        text: What the error says.
        body: The request.
        param: The parameter that the error names apart from its text.
        is_server_error: The status is 500 or 501, so that a wrong value is no reason: servers fail for many.
        is_named: The error's code says that a part is refused, so that no word makes it one of a filter of contents.

    >>> refused_in("Unsupported parameter: 'max_tokens' is not supported with this model.", {"max_tokens": 9})
    {'max_tokens': 'max_completion_tokens'}
    >>> refused_in("max_tokens is too large: 9.", {"max_tokens": 9})
    {}
    """
    text = text[:MOST_READ]
    if model := str(body.get("model") or ""):  # its name may hold that of a parameter
        text = _word(re.escape(model)).sub("", text)
    text = without_repeats(text, body)
    if is_moderated(text) and not is_named:
        return {}
    places = {part for place in (param, *_PLACE.findall(text)) for part in re.findall(r"\w+", place)}
    found: dict[str, str] = {}
    for sentence in _SENTENCE.split(text):
        found |= _refused_in_sentence(sentence, body, places, is_server_error=is_server_error)
    if not is_server_error or _UNSUPPORTED_BY_SERVER.search(text):
        for name in body:
            if name in places and name not in _ESSENTIAL and name not in _OTHER_NAME:
                found |= _changed(name, body, text)
    found |= _format_in(text, body) if is_server_error else _limit_named_in(text, body, places, is_named=is_named)
    if is_named and not found:
        found |= _only_one_in(text, body)
    if WHOLE in found:
        return {WHOLE: found[WHOLE]}
    return found


def _refused_in_sentence(sentence: str, body: Mapping[str, Any], places: set[str], *, is_server_error: bool) -> Refused:
    if body.get("stream") is False and _NEEDS_STREAM.search(sentence):
        return {WHOLE: STREAM}
    head = _CONDITION.split(sentence, maxsplit=1)[0]
    unsupported = _UNSUPPORTED_BY_SERVER if is_server_error else _UNSUPPORTED
    said = head if unsupported.search(head) else sentence
    is_unsupported = bool(unsupported.search(said))
    is_refused = is_unsupported or (not is_server_error and bool(_WRONG.search(said)))
    found: dict[str, str] = dict(_renamed_in(said, body))
    roles = {str(each.get("role")) for each in body.get("messages", ())}
    if _ROLES.search(said) or (is_refused and (_ROLE.search(said) or _is_role_at(places, body))):
        found |= {DEVELOPER: "system"} if "developer" in roles else {SYSTEM: "user"} if "system" in roles else {}
    if not is_refused or (places and not places.isdisjoint(body)):  # then the places say what is meant
        return found | _limit_in(said, body, places) if is_unsupported else found
    for name in body:
        if name not in _ESSENTIAL and name not in _OTHER_NAME and _pattern(name).search(said):
            found |= _changed(name, body, said)
    return found | _limit_in(said, body, places) if is_unsupported else found


def _is_role_at(places: set[str], body: Mapping[str, Any]) -> bool:
    """Return whether a place is the role of a message that instructs, such as ``messages[0].role``."""
    if not {"messages", "role"} <= places:
        return False
    instructs = [str(each.get("role")) in ("system", "developer") for each in body.get("messages", ())]
    return any(is_so and str(at) in places for at, is_so in enumerate(instructs))


def _renamed_in(said: str, body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the limit of tokens and its other name where that one alone is asked for."""
    for name, other in _OTHER_NAME.items():
        if name in body and _asked_for(other).search(said) and not _TOO_MUCH.search(said):
            yield name, other


@functools.cache
def _asked_for(name: str) -> re.Pattern[str]:
    asking = r"use|pass|specify|only (?:supports?|accepts?|allows?|takes?)|requires?|expects?|renamed to|replaced by"
    return re.compile(
        rf"\b(?:{asking}|did you mean)\b[^\w]{{1,4}}(?:the )?(?:\w{{1,12}} ){{0,2}}['\"`]?{name}\b", re.IGNORECASE
    )


def _limit_named_in(text: str, body: Mapping[str, Any], places: set[str], *, is_named: bool) -> dict[str, str]:
    """Return the limit of tokens with its other name where an error in any language is about its name.

    So it is where it names the other name, which was not sent, or apart from its text the one that was. A number says
    that it is about the value.
    """
    if _NUMBER.search(text) or _TOO_MUCH.search(text):
        return {}
    return {
        name: other
        for name, other in _OTHER_NAME.items()
        if name in body
        and (_pattern(other).search(text) or name in places or (is_named and _pattern(name).search(text)))
    }


def _format_in(text: str, body: Mapping[str, Any]) -> Refused:
    """Return the format of the reply where a server failed and names it: it would fail at the same format again."""
    if "response_format" not in body:
        return {}
    found = _pattern("response_format").finditer(text)
    is_meant = any(not _SHOWN_VALUE.match(text, each.end()) for each in found)
    return _changed("response_format", body, text) if is_meant else {}


def _only_one_in(text: str, body: Mapping[str, Any]) -> Refused:
    """Return the part of a request that an error refuses by its code, in any language: the only one that it names."""
    named = [name for name in body if name not in _ESSENTIAL and _pattern(name).search(text)]
    return _changed(named[0], body, text) if len(named) == 1 and named[0] not in _OTHER_NAME else {}


def _limit_in(said: str, body: Mapping[str, Any], places: set[str]) -> dict[str, str]:
    """Return the other name of the limit of tokens where its name is refused, rather than its value."""
    named = [name for name in _OTHER_NAME if name in body and (name in places or _pattern(name).search(said))]
    return {name: _OTHER_NAME[name] for name in named if not _TOO_MUCH.search(said)}


def _changed(name: str, body: Mapping[str, Any], said: str) -> dict[str, str]:
    if name in (LOGPROBS, "top_logprobs"):
        return {LOGPROBS: ""}
    if name == STREAM:
        return {STREAM: WHOLE} if body[STREAM] else {STREAM_KEY: ""}
    if name == "response_format":
        kind = str(body[name].get("type"))
        names_kind = _KIND.search(said)
        return {kind: OBJECT if kind == SCHEMA and names_kind else ""}
    return {name: "1" if name == "temperature" and _ONLY_ONE.search(said) else ""}


@functools.lru_cache(maxsize=256)
def _word(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{words})(?![A-Za-z0-9_])", re.IGNORECASE)


def _pattern(name: str) -> re.Pattern[str]:
    return _word(_NAMES.get(LOGPROBS if name == "top_logprobs" else name, name.replace("_", "[_ ]?")))


def _param_of(error: Exception) -> str:
    param = getattr(error, "param", None)
    return param[:200] if isinstance(param, str) else ""
