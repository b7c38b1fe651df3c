"""Chats whose lines come from a pipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.app.chat.slash_commands import help_text
from judgetree.app.commands.chat import command_to_return, new_name
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.terminal.terminal import width
from judgetree.graphs.drawing.layout import columns
from judgetree.modules.reader.prompts import REFUSAL
from tests.app.conftest import CHAIN, COLLECTION, Cli
from tests.app.talks import AGAIN, COST, FIRST, PAINT, STANDALONE_THICKNESS, THICKNESS


def test_follow_ups_are_answered_and_answers_alone_go_to_stdout(chat: Cli) -> None:
    done = chat(FIRST, "", THICKNESS, AGAIN, PAINT, COST)
    assert (done.status, done.out.splitlines()) == (0, ["the drum", "40 mm", "the drum", "grey", REFUSAL])
    assert f"understood as: {STANDALONE_THICKNESS}" in done.err
    assert "[1] Drums (b.md) · score 2\nturn 2 on main" in done.err
    assert "(from the conversation)\n[1] Norm A (a.md) · score 2\nturn 3 on main · 3 calls" in done.err
    assert "(no answer: neither the conversation nor the documents say it)\nturn 5 on main" in done.err
    assert "come back: judgetree chat -c notes --conversation s\n" in done.err


def test_a_chat_goes_on_where_the_last_one_ended(chat: Cli) -> None:
    chat(FIRST)
    assert chat(THICKNESS).out == "40 mm\n"
    assert chat("/history").out == f"1. {FIRST}\n   the drum\n2. {THICKNESS}\n   40 mm\n"


def test_a_new_chat_gets_a_name_of_its_own_and_says_how_to_come_back(chat: Cli) -> None:
    done = chat(FIRST, options=("-c", COLLECTION, "--system", "naive", "--topk", "2"))
    line = next(line for line in done.err.splitlines() if line.startswith("come back: "))
    assert line.startswith("come back: judgetree chat -c notes --conversation chat-")
    assert line.endswith(" --system naive --topk 2")
    again = line.removeprefix("come back: judgetree chat ").split()
    assert chat("/history", options=tuple(again)).out == f"1. {FIRST}\n   the drum\n"


def test_another_collection_is_refused_unless_it_switches(chat: Cli, cli: Cli, tmp_path: Path) -> None:
    chat(FIRST)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.md").write_text("The drum is grey.", encoding="utf-8")
    assert cli("index", str(tmp_path / "more"), "-c", "more").status == 0
    options = ("-c", "more", "--conversation", "s", "--system", "naive")
    refused = chat(PAINT, options=options)
    assert refused.status == 2
    assert "--switch-collection" in refused.err
    switched = chat(PAINT, options=(*options, "--switch-collection"))
    assert switched.status == 0
    assert "--switch-collection" not in switched.err, "the command to come back needs it no more"
    assert "collection switched to more in" in cli("conversations", "draw", "s").out


def test_a_chat_searches_with_the_graph_of_its_collection(chat: Cli, cli: Cli) -> None:
    options = ("-c", COLLECTION, "--conversation", "s", "--search-type", "dense", "--search-graph", "entities")
    refused = chat(FIRST, options=options)
    assert (refused.status, "has no graph 'entities' yet" in refused.err) == (2, True)
    assert cli("index", "-c", COLLECTION, "--graph", "entities").status == 0
    done = chat(FIRST, options=options)
    assert done.out == "the drum\n"
    assert "--conversation s --search-type dense --search-graph entities\n" in done.err


def test_every_option_stands_in_the_command_to_come_back() -> None:
    options = {"system": "judge", "max_depth": 0, "direct_answer": True, "summary_memory": True, "web_or_rag": False}
    ignored = {"conversation": None, "switch_collection": True, "as_json": True}
    assert command_to_return("s", {"collection": "two words", **options, **ignored}) == (
        "judgetree chat -c 'two words' --conversation s --system judge --max-depth 0 --direct-answer --summary-memory"
    )
    assert len({new_name() for _ in range(20)}) == 20


@pytest.mark.parametrize("fork", ["/after 1", "/branch 1"])
def test_a_question_can_follow_an_earlier_turn_on_a_branch_of_its_own(chat: Cli, fork: str) -> None:
    done = chat(FIRST, PAINT, fork, THICKNESS, "/branch", "/rename thickness", "/branch main", "/history", AGAIN)
    answers, rest = done.out.splitlines()[:3], done.out.splitlines()[3:]
    assert answers == ["the drum", "grey", "40 mm"]
    assert rest[:2] == ["  main      up to turn 2", "* branch-2  up to turn 2, from turn 1 of main"]
    assert rest[2:6] == [f"1. {FIRST}", "   the drum", f"2. {PAINT}", "   grey"]
    assert "turn 3 on main" in done.err
    assert "* main       up to turn 3\n  thickness" in chat("/branch").out


def test_a_question_can_begin_anew(chat: Cli) -> None:
    done = chat(FIRST, "/after 0", THICKNESS, "/branch")
    assert done.out.splitlines() == ["the drum", REFUSAL, "  main      up to turn 1", "* branch-2  up to turn 1"]


def test_a_branch_whose_name_is_a_number_goes_before_the_turn(chat: Cli) -> None:
    chat(FIRST, THICKNESS, "/after 1", PAINT, "/rename 2", "/branch main")
    assert "* 2 " in chat("/branch 2", "/branch").out


def test_turns_are_taken_back_and_asked_again(chat: Cli) -> None:
    done = chat(FIRST, THICKNESS, "/undo", "/history", PAINT, "/regenerate", "/branch")
    assert f"taken back: {THICKNESS}" in done.err
    assert done.out.splitlines() == [
        *("the drum", "40 mm", f"1. {FIRST}", "   the drum", "grey", "grey"),
        *("  main      up to turn 2", "* branch-2  up to turn 2, from turn 1 of main"),
    ]


def test_search_trees_are_shown_by_turn_also_those_of_another_mode(chat: Cli) -> None:
    chat(FIRST, THICKNESS, options=("-c", COLLECTION, "--conversation", "s", "--system", "naive", "--topk", "1"))
    done = chat(AGAIN, "/tree", "/tree 2")
    assert "Turn 3 searched no documents: its answer is from the conversation." in done.err
    assert done.out.startswith(f"the drum\nQ: {STANDALONE_THICKNESS}\nA: 40 mm")


def test_a_conversation_is_drawn_by_the_name_of_the_file(chat: Cli, tmp_path: Path) -> None:
    page = tmp_path / "talk.html"
    assert chat(FIRST, f"/draw {page}").status == 0
    assert FIRST in page.read_text(encoding="utf-8")


def test_help_names_every_command_and_quit_ends_the_chat(chat: Cli) -> None:
    done = chat("/help", "/quit", "never asked")
    assert (done.status, done.out) == (0, f"{help_text(width())}\n")


@pytest.mark.parametrize("room", [60, 80])
def test_help_fits_a_narrow_terminal(room: int) -> None:
    text = help_text(room)
    assert max(map(columns, text.splitlines())) <= room
    assert " ".join(text.split()) == " ".join(help_text(200).split())


def test_a_question_may_begin_with_a_slash_behind_a_blank(chat: Cli) -> None:
    assert chat(" /help me").out == f"{REFUSAL}\n"


def test_json_is_an_event_a_line_and_nothing_else(chat: Cli) -> None:
    done = chat(FIRST, "/history", options=("-c", COLLECTION, "--conversation", "s", "--json"))
    events = [json.loads(line) for line in done.out.splitlines()]
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("session", "done")
    assert {"tree", "content", "source"} <= set(kinds)
    assert (events[-1]["answer"], events[-1]["name"]) == ("the drum", "s")
    assert f"1. {FIRST}" in done.err


def test_a_turn_whose_model_fails_stays_open_and_is_gone_on_with(chat: Cli, scripted: ScriptedServer) -> None:
    scripted.configure(faults={"500": 1.0}, fault_kinds=["read"])
    failed = chat(FIRST)
    assert (failed.status, failed.out) == (1, "")
    assert f"Turn 1 is not answered yet: {FIRST}\n/resume continues it" in failed.err
    scripted.configure(faults={})
    scripted.reset()
    done = chat("/resume", "/history")
    assert (done.status, done.out) == (0, f"the drum\n1. {FIRST}\n   the drum\n")
    assert not scripted.requests["judge"] + scripted.requests["needed"]


def test_a_pipe_goes_on_after_a_failed_turn(chat: Cli, scripted: ScriptedServer) -> None:
    scripted.responses = lambda request: (
        ChatReply(text="down", status=503) if request.prompt.query == FIRST and request.prompt.kind == "read" else None
    )
    done = chat(FIRST, PAINT)
    assert (done.status, done.out) == (1, "grey\n")


def test_small_talk_and_general_knowledge_answer_only_where_they_may(chat: Cli, scripted: ScriptedServer) -> None:
    scripted.configure(knows_by_heart=True)
    common = ("-c", COLLECTION, "--system", "naive", "--topk", "1", "--conversation")
    assert chat("Hello!", CHAIN.question, options=(*common, "a")).out == f"{REFUSAL}\n{REFUSAL}\n"
    options = (*common, "b", "--direct-answer", "--answer-without-evidence")
    done = chat("Hello!", CHAIN.question, options=options)
    assert done.out.splitlines() == ["Hello! What would you like to know?", "40 mm"]
    assert "(from general knowledge: no document says so)" in done.err


@pytest.mark.parametrize(
    ("options", "lines", "advice"),
    [
        ((), (), "-c NAME"),
        (("-c", "nothing"), (), "Collections: notes"),
        (("-c", COLLECTION, "--conversation", " "), (), "needs a name"),
        (("-c", COLLECTION, "--web-or-rag"), (), "JUDGETREE_SEARXNG_URL"),
        (("-c", COLLECTION), ("/nope",), "/help"),
        (("-c", COLLECTION), ("/resume",), "no open turn to resume"),
        (("-c", COLLECTION), ("/tree",), "no turn yet"),
        (("-c", COLLECTION), ("/undo",), "Ask something first"),
        (("-c", COLLECTION), ("/draw talk.pdf",), ".svg"),
        (("-c", COLLECTION, "--system", "naive"), (FIRST, "/after 7"), "/history"),
        (("-c", COLLECTION, "--system", "naive"), (FIRST, "/branch other"), "Branches: main"),
        (("-c", COLLECTION, "--system", "naive"), (FIRST, "/rename"), "empty"),
    ],
)
def test_a_mistake_ends_a_pipe_with_its_remedy(
    chat: Cli, options: tuple[str, ...], lines: tuple[str, ...], advice: str
) -> None:
    done = chat(*lines, "/help", options=options)
    assert done.status == 2
    assert help_text(width()) not in done.out
    assert advice in done.err


def test_a_log_that_cannot_be_written_is_told(chat: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (folder := tmp_path / "sk-hunter22").mkdir()
    monkeypatch.setenv("OPENAI_API_KEY", folder.name)
    monkeypatch.setenv("JUDGETREE_QA_LOG", str(folder))
    for _ in range(2):
        done = chat(FIRST)
        assert (done.status, done.out) == (0, "the drum\n")
        assert done.err.count("The turn is missing in the log of questions (JUDGETREE_QA_LOG)") == 1
        assert folder.name not in done.err


def test_the_way_back_repeats_tools_and_thinking(chat: Cli) -> None:
    options = ("-c", COLLECTION, "--system", "react", "--topk", "2", "--tool", "calculator", "--no-thinking")
    line = next(line for line in chat(FIRST, options=options).err.splitlines() if line.startswith("come back: "))
    assert set(zip(line.split(), [*line.split()[1:], ""], strict=True)) >= {
        ("--system", "react"),
        ("--tools", "calculator"),
    }
    assert line.count("calculator") == line.count("--no-thinking") == 1


def test_what_is_set_holds_for_the_following_questions(chat: Cli) -> None:
    done = chat("/set topk 1", FIRST, "/set topk", "/regenerate", "/set")
    assert done.status == 0, done.err
    assert "turn 1 on main · 2 calls" in done.err
    assert "turn 1 on regenerated" in done.err or "turn 1 on " in done.err.partition("turn 1 on main")[2]
    assert "topk (as the chat began): a whole number from 1 on" in done.out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/set hammer 3", "There is no option 'hammer'. Allowed: llm, temperature, thinking, topk"),
        ("/set topk many", "topk: Input should be a valid integer (it is 'many')"),
        ("/set thinking perhaps", "thinking 'perhaps' is not allowed. Give on or off"),
        ("/set search_type fuzzy", "search_type: Input should be 'hybrid', 'dense' or 'sparse' (it is 'fuzzy')"),
        ("/set score_threshold nan", "score_threshold: Input should be"),
    ],
)
def test_what_cannot_be_set_is_refused(chat: Cli, line: str, said: str) -> None:
    done = chat(line, FIRST)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_an_open_turn_is_resumed_with_what_was_set(chat: Cli, scripted: ScriptedServer) -> None:
    scripted.configure(faults={"500": 1.0}, fault_kinds=["read"])
    chat("/set topk 1", FIRST)
    scripted.configure(faults={})
    done = chat("/resume")
    assert done.out == "the drum\n"
    assert "turn 1 on main" in done.err
    assert "· 3 calls" not in done.err


def test_a_password_in_a_model_that_is_set_is_not_shown(chat: Cli) -> None:
    done = chat("/set llm http://ada:lovelace@127.0.0.1:9/v1#m", "/set")
    assert "http://127.0.0.1:9/v1#m" in done.err
    assert "lovelace" not in done.out + done.err
