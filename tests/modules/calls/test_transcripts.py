"""Transcripts: each text once, secrets starred, deleted with their threads, and no burden to the calls."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import zlib
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from judgetree.modules.addresses import Address
from judgetree.modules.calls.completion import Completion, TokenLogprob
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions
from judgetree.modules.calls.transcript_writer import TranscriptWriter, forget_transcripts
from judgetree.modules.calls.transcripts import DAMAGED, RecordedCall, TranscriptPlace
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import SettingsError
from judgetree.modules.storage.databases import open_database
from judgetree.modules.transcripts.sql import TRANSCRIPT_TABLES

REPLY = Completion(text="VG 68", thinking="it says so", finish_reason="stop")


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> TranscriptPlace:
    if request.param == "sqlite":
        return at(tmp_path / "calls.sqlite")
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
        redis = pytest.importorskip("redis")
        with redis.Redis.from_url(url) as client:
            for each in client.scan_iter("judgetree:transcript*"):
                client.delete(each)
        return TranscriptPlace(url=Address(url))
    url = request.getfixturevalue("postgres_url")
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("transcripts", "transcript_parts", "transcript_texts", "transcript_format"):
            connection.execute(f"DROP TABLE IF EXISTS judgetree_{table}")
    return TranscriptPlace(url=Address(url))


def at(file: Path) -> TranscriptPlace:
    return TranscriptPlace(url=Address(f"sqlite:///{file}"))


def kept(
    writer: TranscriptWriter,
    *texts: str,
    root: str = "t",
    owner: str = "",
    reply: Completion | None = REPLY,
    options: CallOptions = PLAIN_TEXT,
    error: str = "",
) -> str:
    """Keep a call of these messages, and return its id."""
    meter = CallMeter(node="judge")
    meter.record(kind="chat", model="m", started=0.0, error=error)
    messages = [("system", texts[0]), *(("user", text) for text in texts[1:])]
    writer.keep(meter.records[0], messages, options, reply, root=root, owner=owner or root)
    return meter.records[0]["call_id"]


def in_a_life(place: TranscriptPlace, work: Callable[[TranscriptWriter], Awaitable[object]], **options: object) -> None:
    async def life() -> None:
        writer = TranscriptWriter(place, **{"record": "full", **options})  # type: ignore[arg-type]
        await writer.open()
        try:
            await work(writer)
        finally:
            await writer.aclose()

    asyncio.run(life())


def texts_in(place: TranscriptPlace) -> int:
    """Number of texts that are kept, records left out."""
    if place.url.startswith("redis"):
        import redis

        with redis.Redis.from_url(place.url) as client:
            hashes = list(client.scan_iter("judgetree:transcript:*"))
            return sum(field.startswith(b"t") for each in hashes for field in client.hkeys(each))  # type: ignore[union-attr]
    database = open_database(place.file or place.url, TRANSCRIPT_TABLES)
    try:
        [(texts,)] = database.read(("SELECT count(*) FROM transcript_texts", ()))
    finally:
        database.close()
    return int(str(texts))


def by_id(calls: Iterable[RecordedCall]) -> dict[str, RecordedCall]:
    return {call.record["call_id"]: call for call in calls}


def test_a_call_is_read_back_as_it_was_made(place: TranscriptPlace) -> None:
    ids: list[str] = []
    options = CallOptions(max_tokens=5, json_format="json_schema", json_schema={"type": "object"})
    likely = Completion(
        text="yes", thinking="", finish_reason="length", first_token=(TokenLogprob(token=" yes", logprob=-0.25),)
    )

    async def life(writer: TranscriptWriter) -> None:
        ids.append(kept(writer, "Judge.", "压力\x00 保持", options=options, reply=likely))
        ids.append(kept(writer, "Judge.", "A", "B", reply=None, error="HTTP 500"))

    in_a_life(place, life)
    calls = by_id(place.read(ids))
    first, second = (calls[each].transcript for each in ids)
    assert first.messages == (("system", "Judge."), ("user", "压力 保持"))
    assert first.options == {"max_tokens": 5, "json_format": "json_schema", "json_schema": {"type": "object"}}
    assert first.reply == likely
    assert second.messages == (("system", "Judge."), ("user", "A"), ("user", "B"))
    assert (second.options, second.reply, calls[ids[1]].record["error"]) == ({}, None, "HTTP 500")
    assert set(by_id(place.read([], root="t"))) == set(ids)
    assert place.read(["never made"]) == []


def test_a_text_that_many_calls_share_is_kept_once(tmp_path: Path) -> None:
    instructions = "\n".join(f"Rule {number}: be exact about {number * 7919}." for number in range(400))

    async def life(writer: TranscriptWriter) -> None:
        for number in range(200):
            kept(writer, instructions, f"Passage {number}", reply=None)

    in_a_life(at(tmp_path / "calls.sqlite"), life)
    assert (tmp_path / "calls.sqlite").stat().st_size < 200_000, f"200 calls of {len(instructions):,} characters"
    assert not list(tmp_path.glob("*-wal")), "the file can be copied by itself"


def test_prompts_alone_are_kept_without_replies(tmp_path: Path) -> None:
    place, ids = at(tmp_path / "calls.sqlite"), []

    async def life(writer: TranscriptWriter) -> None:
        ids.append(kept(writer, "Judge.", "A"))

    in_a_life(place, life, record="prompts")
    [call] = place.read(ids)
    assert (len(call.transcript.messages), call.transcript.reply) == (2, None)


@pytest.mark.parametrize("secret", ["text", "0", "{", "first_token"])
def test_a_secret_that_looks_like_json_damages_no_transcript(tmp_path: Path, secret: str) -> None:
    place, ids = at(tmp_path / "calls.sqlite"), []
    token = TokenLogprob(token="@", logprob=-0.25)
    reply = Completion(text="see https://a.example", thinking="no", finish_reason="stop", first_token=(token,))

    async def life(writer: TranscriptWriter) -> None:
        ids.append(kept(writer, f"Say {secret} .", reply=reply, options=CallOptions(temperature=0.5)))

    in_a_life(place, life, secrets=(secret,))
    [call] = place.read(ids)
    assert call.transcript.messages == (("system", "Say *** ."),)
    assert (call.transcript.reply, call.transcript.options) == (reply, {"temperature": 0.5})


def test_secrets_are_in_no_file(tmp_path: Path) -> None:
    place, ids = at(tmp_path / "calls.sqlite"), []
    key, password = "planted-key-7731", "hunter2-and-more"
    echoed = f"X-Api-Key: {key}\nAuthorization: Basic YWRhOmh1bnRlcjItYW5kLW1vcmU=\nsk-abcdef0123456789"

    async def life(writer: TranscriptWriter) -> None:
        reply = Completion(text=echoed, thinking=f'"{key}"', finish_reason="stop")
        ids.append(kept(writer, f"Never say {key}.", echoed, f"postgresql://ada:{password}@host/db", reply=reply))
        ids.append(kept(writer, "Judge.", "B", reply=None, error=f"refused: {echoed}"))

    in_a_life(place, life, secrets=(key, password))
    said = repr(place.read(ids))
    assert said.count("***") >= 8
    for secret in (key, password, "YWRhOmh1bnRlcjItYW5kLW1vcmU", "sk-abcdef"):
        assert secret not in said


def test_deleted_threads_and_conversations_leave_no_text(place: TranscriptPlace) -> None:
    ids: list[str] = []

    async def life(writer: TranscriptWriter) -> None:
        ids.extend(
            (
                kept(writer, "Judge.", "of the thread", root="t"),
                kept(writer, "Judge.", "of the conversation", root="u", owner="c"),
                kept(writer, "Judge.", "of another", root="v"),
            )
        )
        await writer.flush()
        await forget_transcripts(place, ["t", "c"])
        kept(writer, "Judge.", "after", root="w")

    in_a_life(place, life)
    assert set(by_id(place.read(ids))) == {ids[2]}
    [last] = place.read([ids[2]])
    assert last.transcript.messages[0] == ("system", "Judge."), "a text that is still needed stays"
    # instructions, two passages, one reply and the records, which are kept apart; once a tree in Redis
    assert texts_in(place) == (6 if place.url.startswith("redis") else 4)


def test_nothing_is_made_to_forget_what_was_never_recorded(tmp_path: Path) -> None:
    place = at(tmp_path / "calls.sqlite")
    asyncio.run(forget_transcripts(place, ["t"]))
    assert place.read(["a"], root="t") == []
    assert not (tmp_path / "calls.sqlite").exists()


def test_two_processes_write_one_file(tmp_path: Path) -> None:
    place, ids = at(tmp_path / "calls.sqlite"), []

    async def both() -> None:
        writers = [TranscriptWriter(place, record="full") for _ in range(2)]
        for writer in writers:
            await writer.open()
        for number in range(100):
            ids.append(kept(writers[number % 2], "Judge.", f"Passage {number}"))
        await asyncio.gather(*(writer.aclose() for writer in writers))

    asyncio.run(both())
    assert len(place.read(ids)) == 100


def test_a_write_that_fails_ends_the_recording_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place, ids = at(tmp_path / "calls.sqlite"), []

    async def life(writer: TranscriptWriter) -> None:
        ids.append(kept(writer, "Judge.", "before"))
        await writer.flush()
        with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as other:
            other.execute("DROP TABLE transcript_texts")
        kept(writer, "Judge.", "after")
        await writer.flush()
        kept(writer, "Judge.", "later")

    with caplog.at_level(logging.WARNING):
        in_a_life(place, life)
    [warning] = [record.getMessage() for record in caplog.records]
    assert "no longer recorded" in warning
    assert "transcript_texts" in warning
    with pytest.raises(SettingsError, match="cannot be read"):
        place.read(ids)


def test_a_place_that_cannot_be_used_is_reported_before_the_first_call(tmp_path: Path) -> None:
    (tmp_path / "calls.sqlite").mkdir()

    async def life(writer: TranscriptWriter) -> None:
        raise AssertionError("it was opened")

    with pytest.raises(SettingsError, match="JUDGETREE_RECORD=none"):
        in_a_life(at(tmp_path / "calls.sqlite"), life)


def test_another_format_is_refused_by_name(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as connection:
        connection.execute("CREATE TABLE transcript_format (format TEXT PRIMARY KEY)")
        connection.execute("INSERT INTO transcript_format VALUES ('judgetree-transcripts/1')")
        connection.commit()
    with pytest.raises(SettingsError, match="has the format 'judgetree-transcripts/1'"):
        at(tmp_path / "calls.sqlite").read(["a"])


def test_a_damaged_text_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    place, ids = at(tmp_path / "calls.sqlite"), []

    async def life(writer: TranscriptWriter) -> None:
        ids.append(kept(writer, "Judge.", "A", options=CallOptions(max_tokens=5)))
        ids.append(kept(writer, "Other.", "B", reply=None))

    in_a_life(place, life)
    with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as file, file:
        texts = [
            (digest, zlib.decompress(content)) for digest, content in file.execute("SELECT * FROM transcript_texts")
        ]
        file.executemany(
            "UPDATE transcript_texts SET content = x'00' WHERE digest = ?",
            [(digest,) for digest, text in texts if text not in (b"Judge.", b"B")],
        )
    first, second = (by_id(place.read(ids))[each].transcript for each in ids)
    assert first.messages == (("system", "Judge."), ("user", DAMAGED))
    assert first.reply is not None
    assert (first.options, first.reply.text) == ({}, DAMAGED)
    assert second.messages == (("system", DAMAGED), ("user", "B"))
