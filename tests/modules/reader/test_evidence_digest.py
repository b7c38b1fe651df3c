"""Evidence that is shortened in as many calls as it fills prompts."""

from __future__ import annotations

import asyncio

from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.tokens import message_tokens, text_tokens
from judgetree.modules.reader.strategies import digested

PASSAGES = [f"{number}.md\nFact {number}. " + "It is heavy. " * 60 for number in range(6)]


def digest(passages: list[str], *, fails: tuple[int, ...] = (), said: str = "") -> tuple[str, list[list[Message]]]:
    asked: list[list[Message]] = []

    async def ask(messages: list[Message]) -> str | None:
        asked.append(messages)
        return None if len(asked) in fails else said or f"part {len(asked)}"

    found = asyncio.run(digested(passages, "Which?", ask, max_prompt_tokens=700, max_tokens=300))
    return found, asked


def test_each_call_reads_as_much_as_its_prompt_holds() -> None:
    found, asked = digest(PASSAGES)
    assert 2 <= len(asked) <= 4
    assert max(map(message_tokens, asked)) <= 700
    assert found == "\n\n".join(f"part {number}" for number in range(1, len(asked) + 1))
    assert all(f"[{number + 1}] {number}.md" in str(asked) for number in range(6))


def test_passages_of_a_call_that_fails_are_cut() -> None:
    found, asked = digest(PASSAGES, fails=(1,))
    assert found.startswith("[1] 0.md")
    assert found.endswith(f"part {len(asked)}")
    assert text_tokens(found) <= 300


def test_a_digest_and_a_passage_of_any_length_fit() -> None:
    found, asked = digest(["word " * 200_000], said="word. " * 100_000)
    assert len(asked) == 1
    assert message_tokens(asked[0]) <= 700
    assert 0 < text_tokens(found) <= 300
    assert digest([])[0] == ""
