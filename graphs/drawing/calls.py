"""The model calls of a search tree: as a table and as pages, for the terminal and for notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Protocol

from ...modules.calls.record import CallRecord, caveats_of
from ...modules.calls.transcripts import Transcript
from ...modules.caveats.kinds import CAVEATS
from ...modules.storage.texts import html_text, printable
from .layout import columns, one_line, shorten

_HEAD = ("call", "node", "model", "tokens", "seconds", "attempts", "")
_OUTSIDE = "Calls outside the search"


class DrawnCall(Protocol):
    """Protocol of the calls that are drawn, such as ``rag.model_calls.ModelCall``."""

    @property
    def query_number(self) -> int:
        """Number of its query; 0 for a call outside the tree."""
        ...

    @property
    def number(self) -> int:
        """Number among the calls of its query."""
        ...

    @property
    def query(self) -> str:
        """Its query."""
        ...

    @property
    def record(self) -> CallRecord:
        """Its record."""
        ...

    @property
    def transcript(self) -> Transcript | None:
        """Its texts; None if they were not recorded."""
        ...


def draw_calls(calls: Sequence[DrawnCall], *, width: int) -> str:
    """Draw a table, one line a call below the line of its query; lines that are too long end in "…"."""
    if not calls:
        return "no model calls"
    rows = [_cells(call) for call in calls]
    widths = [max(columns(row[at]) for row in (_HEAD, *rows)) for at in range(len(_HEAD))]
    lines = [_aligned(_HEAD, widths, width)]
    for _, group in groupby(zip(calls, rows, strict=True), key=lambda each: each[0].query_number):
        some = list(group)
        lines.append(shorten(_query_line(some[0][0]), width))
        lines += [_aligned(row, widths, width) for _, row in some]
    return "\n".join(lines)


def draw_call(call: DrawnCall) -> str:
    """Draw one call for the terminal: its facts, the messages that were sent and the reply that came."""
    lines = [f"── {_title(call)} ──", _query_line(call), format_call(call.record)]
    lines += [f"\n[{name}]\n{printable(text)}" for name, text in texts_of(call.transcript, call.record)]
    return "\n".join(lines)


def draw_calls_html(calls: Sequence[DrawnCall]) -> str:
    """Draw a table for a notebook, in which each recorded call opens to its texts."""
    if not calls:
        return "<p>no model calls</p>"
    return '<div style="max-height:640px;overflow:auto">' + "".join(map(draw_call_html, calls)) + "</div>"


def draw_call_html(call: DrawnCall) -> str:
    """Draw one call for a notebook: a line that opens to its texts."""
    query = html_text(_query_line(call))
    facts = html_text(format_call(call.record))
    body = "".join(
        f'<p><b>{html_text(name)}</b></p><pre style="white-space:pre-wrap;text-align:left">{html_text(text)}</pre>'
        for name, text in texts_of(call.transcript, call.record)
    )
    summary = f"<summary><b>{html_text(_title(call))}</b> · {facts}</summary>"
    return f'<details style="text-align:left">{summary}<p>{query}</p>{body}</details>'


def texts_of(transcript: Transcript | None, record: CallRecord) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of all that a call was sent and that came, or why there is nothing."""
    if transcript is None:
        yield "not recorded", why_not(record)
        return
    yield from transcript.messages
    if transcript.options:
        yield "options", json.dumps(transcript.options, ensure_ascii=False)
    if record["error"]:
        yield "error", record["error"]
    if transcript.reply is None:
        return
    if transcript.reply.thinking:
        yield "thinking", transcript.reply.thinking
    yield "reply", transcript.reply.text
    if transcript.reply.first_token:
        likely = ((each.token, round(each.logprob, 3)) for each in transcript.reply.first_token)
        yield "first token (log probability)", ", ".join(f"{token!r} {logprob}" for token, logprob in likely)


def caveat_nouns(record: CallRecord) -> Iterator[str]:
    """Yield why the reply of a call is worse than it looks, with the reason of a model that declined."""
    for kind in caveats_of(record):
        reason = one_line(record.get("refusal", "")) if kind == "declined" else ""
        yield f"{CAVEATS[kind].noun} ({reason})" if reason else CAVEATS[kind].noun


def why_not(record: CallRecord) -> str:
    """Return why a call has no transcript."""
    if record["kind"] != "chat":
        return f"Calls for {record['kind']} are not recorded."
    return "Its texts were not kept. To keep those of further calls: --record full, or JUDGETREE_RECORD=full."


def _title(call: DrawnCall) -> str:
    return f"{_number(call)} {one_line(call.record['node'])}"


def _number(call: DrawnCall) -> str:
    return f"{call.query_number}.{call.number}"


def _query_line(call: DrawnCall) -> str:
    return f"{call.query_number} Q: {one_line(call.query)}" if call.query_number else f"0 {_OUTSIDE}"


def _cells(call: DrawnCall) -> tuple[str, ...]:
    record = call.record
    return (
        f"  {_number(call)}",
        one_line(record["node"] if record["kind"] == "chat" else f"{record['node']} ({record['kind']})"),
        one_line(record["model"]),
        _tokens(record),
        f"{record['seconds']:.2f}",
        str(record["attempts"]),
        ", ".join(_remarks(record)),
    )


def _tokens(record: CallRecord) -> str:
    if record["kind"] != "chat":
        return ""
    return f"{'~' if record['estimated'] else ''}{record['prompt_tokens']:,} + {record['completion_tokens']:,}"


def _remarks(record: CallRecord) -> Iterator[str]:
    if record["cached"]:
        yield "cached"
    yield from caveat_nouns(record)
    if record["error"]:
        yield one_line(record["error"])


def format_call(record: CallRecord) -> str:
    """Format model, tokens, seconds, attempts and what went wrong."""
    attempts = f"{record['attempts']} attempt{'' if record['attempts'] == 1 else 's'}"
    tokens = [f"{_tokens(record)} tokens"] if record["kind"] == "chat" else []
    about = [f"chunk {record['chunk_id']}"] if record["chunk_id"] else []
    facts = [record["model"], *tokens, f"{record['seconds']:.2f} s", attempts, *about, *_remarks(record)]
    return " · ".join(map(one_line, facts))


def _aligned(row: Sequence[str], widths: Sequence[int], width: int) -> str:
    """Align the cells of a row; the last, the remarks, is shortened to what is left of ``width``."""
    cells = [text + " " * (wanted - columns(text)) for text, wanted in zip(row[:-1], widths, strict=False)]
    line = "  ".join(cells)
    return f"{line}  {shorten(row[-1], max(width - columns(line) - 2, 8))}".rstrip()
