"""``judgetree calls``: what each model call was sent and what came, where it was recorded."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.app.conftest import CHAIN, COLLECTION, SUB_QUESTION, Cli, new_thread
from tests.eval.dataset_files import write_lines


def asked(cli: Cli, *options: str) -> str:
    thread = new_thread()
    cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread, *options).ok()
    return thread


def test_the_table_lists_every_call_and_a_node_shows_its_texts(cli: Cli, home: Path) -> None:
    thread = asked(cli)
    table = cli("calls", thread).ok()
    assert [f"1 Q: {CHAIN.question}" in table.out, f"2 Q: {SUB_QUESTION}" in table.out] == [True, True]
    assert table.out.count("judge") >= 6
    assert "generate" in table.out
    assert f"judgetree calls {thread} --node 1" in table.err
    second = cli("calls", thread, "--node", "2").ok().out
    assert "[system]\n" in second
    assert "The drum's wall is 40 mm thick." in second
    assert "[reply]\n40 mm" in second
    assert CHAIN.question not in second
    one = cli("calls", thread, "--node", "1.2").ok().out
    assert one.count("[reply]") == one.count("[system]") == 1
    everything = cli("calls", thread, "--full").ok().out
    assert everything.count("[reply]") > second.count("[reply]") > 1


def test_json_has_all_that_was_recorded(cli: Cli, home: Path) -> None:
    calls = json.loads(cli("calls", asked(cli), "--json").ok().out)
    chats = [call for call in calls if call["record"]["kind"] == "chat"]
    assert len(chats) > 5
    assert all(call["transcript"]["messages"] and call["transcript"]["reply"]["text"] for call in chats)
    assert {call["depth"] for call in chats} == {0, 1}


def test_what_was_not_recorded_says_how_to_record_it(cli: Cli, home: Path) -> None:
    thread = asked(cli, "--record", "none")
    shown = cli("calls", thread).ok()
    assert "generate" in shown.out
    assert "--record full" in shown.err
    assert "Its texts were not kept" in cli("calls", thread, "--node", "1").ok().out
    assert not list(home.glob("*transcripts*"))


def test_prompts_alone(cli: Cli, home: Path) -> None:
    shown = cli("calls", asked(cli, "--record", "prompts"), "--full").ok().out
    assert "[user]" in shown
    assert "[reply]" not in shown


def test_a_sub_run_has_its_own_calls(cli: Cli, home: Path) -> None:
    calls = json.loads(cli("calls", asked(cli), "--json").ok().out)
    sub = next(call["thread_id"] for call in calls if call["query"] == SUB_QUESTION)
    shown = cli("calls", sub, "--full").ok().out
    assert "[reply]\n40 mm" in shown


@pytest.mark.parametrize(
    ("options", "advice"),
    [(("nobody",), "nobody"), (("t", "--node", "x"), "such as 2"), (("t", "--node", "9"), "Queries with calls: 1 to")],
)
def test_a_wrong_name_or_number_is_refused(cli: Cli, home: Path, options: tuple[str, ...], advice: str) -> None:
    cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", "t", "--system", "naive").ok()
    cli("calls", *options).refused(advice)


def test_a_run_keeps_its_calls_wherever_it_is_copied(cli: Cli, home: Path, tmp_path: Path) -> None:
    data = write_lines(tmp_path, {"question": CHAIN.question, "id": "q1"}, name="mine.jsonl")
    run, moved = tmp_path / "run", tmp_path / "elsewhere"
    ask = ("eval", "run", "--questions", str(data), "--corpus", COLLECTION, "--systems", "naive,judge")
    cli(*ask, "--out", str(run)).ok()
    run.rename(moved)
    shown = cli("calls", "q1", "--run", str(moved), "--full").ok().out
    assert "naive, repeat 0" in shown
    assert "judge, repeat 0" in shown
    assert "[reply]\n40 mm" in shown
    cli("calls", "q9", "--run", str(moved)).refused("q1")
    cli("calls", "q1", "--run", str(tmp_path)).refused("--out")
    cli(*ask, "--out", str(tmp_path / "again")).ok()  # out of the cache, and recorded all the same
    calls = json.loads(cli("calls", "q1", "--run", str(tmp_path / "again"), "--json").ok().out)
    chats = [call for call in calls if call["record"]["kind"] == "chat"]
    assert all(call["record"]["cached"] and call["transcript"] for call in chats)
    cli(*ask, "--out", str(tmp_path / "none"), "--record", "none").ok()
    assert not (tmp_path / "none" / "transcripts.sqlite").exists()


def test_a_conversation_is_recorded_on_request_and_forgotten_with_its_turns(
    chat: Cli, cli: Cli, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    options = ("-c", COLLECTION, "--conversation", "s")
    chat(CHAIN.question, options=options).ok()
    assert not list(home.glob("*transcripts*"))
    chat("/undo", CHAIN.question, options=(*options, "--record", "full")).ok()
    [file] = home.glob("*transcripts.sqlite")
    thread = json.loads(cli("threads", "--json").ok().out)[0]["thread_id"]
    assert "[reply]\n40 mm" in cli("calls", thread, "--full").ok().out
    cli("conversations", "delete", "s", "--yes").ok()
    with closing(sqlite3.connect(file)) as connection:
        [left] = connection.execute(
            "SELECT (SELECT count(*) FROM transcripts) + (SELECT count(*) FROM transcript_texts)"
        )
    assert left == (0,)
