"""Chats that filter candidates, and whose prompts depend on thinking."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.judge.prompts import INSERT_BLOCK_SYSTEM
from judgetree.modules.reader.prompts import READER_SYSTEM
from tests.app.conftest import CHAIN, COLLECTION, Cli
from tests.app.talks import FIRST, THICKNESS

NAIVE = ("-c", COLLECTION, "--conversation", "s", "--system", "naive", "--topk", "2")


@pytest.fixture
def asked(scripted: ScriptedServer) -> Counter[tuple[str, str]]:
    """(system message, model) of the calls."""
    asked: Counter[tuple[str, str]] = Counter()

    def noting(request: ReceivedRequest) -> None:
        asked[request.messages[0][1], request.model] += 1

    scripted.responses = noting
    return asked


def test_key_passages_and_reasons_are_shown(chat: Cli) -> None:
    done = chat(FIRST, THICKNESS, options=(*NAIVE, "--insert-block"))
    assert done.out == "the drum\n40 mm\n"
    quoted = "[1] Norm A (a.md) · “Norm A names the drum.” · It holds a needed fact."
    assert f"the filter took out 1 of 2 chunks\n{quoted}" in done.err
    assert "--insert-block" in done.err.splitlines()[-1]


def test_a_chain_keeps_both_of_its_chunks(chat: Cli) -> None:
    options = ("-c", COLLECTION, "--conversation", "s", "--insert-block")
    document = json.loads(chat(CHAIN.question, options=(*options, "--json")).out.splitlines()[-1])
    assert document["answer"] == CHAIN.answer
    quoted = {ref["source"]: ref["key_passage"] for ref in document["turn"]["chunks"] if "key_passage" in ref}
    assert quoted["a.md"] == "Norm A names the drum."


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        (("--insert-block-llm", "{url}#own", "--judge-llm", "{url}#judging"), "own"),
        (("--judge-llm", "{url}#judging"), "judging"),
        ((), "scripted"),
    ],
)
def test_the_filter_s_model_is_its_own_or_the_one_that_judges(
    chat: Cli, scripted: ScriptedServer, asked: Counter[tuple[str, str]], models: tuple[str, ...], expected: str
) -> None:
    given = [each.format(url=scripted.base_url) for each in models]
    chat(FIRST, options=("-c", COLLECTION, "--conversation", "s", "--insert-block", *given)).ok()
    assert {model for system, model in asked if system == INSERT_BLOCK_SYSTEM} == {expected}


def test_the_filter_is_set_for_the_following_questions(chat: Cli, asked: Counter[tuple[str, str]]) -> None:
    chat(FIRST, options=NAIVE).ok()
    assert asked[INSERT_BLOCK_SYSTEM, "scripted"] == 0
    chat("/set insert_block on", FIRST, "/set insert_block off", FIRST, options=NAIVE).ok()
    assert asked[INSERT_BLOCK_SYSTEM, "scripted"] == 2


def test_thinking_chooses_the_prompts_of_a_file(chat: Cli, asked: Counter[tuple[str, str]], tmp_path: Path) -> None:
    file = tmp_path / "thinking.yaml"
    text = "format: judgetree-prompts/1\nreader:\n  system: Think well.\n"
    file.write_text(text, encoding="utf-8")
    options = (*NAIVE, "--prompts-thinking", str(file))
    chat(FIRST, "/set thinking on", FIRST, options=options)
    assert asked[READER_SYSTEM, "scripted"] == asked["Think well.", "scripted"] == 1
