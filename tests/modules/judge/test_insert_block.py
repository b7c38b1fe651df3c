"""The filter before an answer: what it says of chunks, and what it makes of careless models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelSetupError
from judgetree.modules.judge.insert_block import (
    MAX_KEY_PASSAGE,
    NOT_IN_TEXT,
    Block,
    InsertBlockFilter,
    left_in,
    quotation_in,
    quoted_in,
    report_of,
    with_block,
)
from tests.graphs.fakes import FakeLLM, chunk

OIL, ROPE, SALT = (
    chunk("oil", "Class Delta\nneeds Vellin. It is red."),
    chunk("rope", "Ropes are grey."),
    chunk("salt", "Salt is white."),
)


def reply(belongs: object, key_passage: str = "", reason: str = "") -> str:
    return json.dumps({"belongs": belongs, "key_passage": key_passage, "reason": reason})


def blocks_of(say: dict[str, str | Exception], *, meter: CallMeter | None = None) -> list[Block]:
    """The blocks of all three chunks by a model that says this of each text; one call at least was made of each."""

    def answered(messages: Sequence[Message]) -> str:
        said = next(said for text, said in say.items() if text in messages[1][1])
        if isinstance(said, Exception):
            raise said
        return said

    asking = InsertBlockFilter(FakeLLM(answered)).blocks(
        "Which oil?", [OIL, ROPE, SALT], meter=meter or CallMeter(node="n")
    )
    return asyncio.run(asking)


def test_each_chunk_has_its_block_in_the_order_of_the_chunks() -> None:
    meter = CallMeter(node="n")
    blocks = blocks_of(
        {"Delta": reply(True, '"Delta needs Vellin."', " It names it. "), "Ropes": reply(False), "Salt": reply(False)},
        meter=meter,
    )
    assert blocks[0] == Block(belongs=True, key_passage="Delta\nneeds Vellin.", reason="It names it.")
    assert [block.belongs for block in blocks] == [True, False, False]
    assert [record["chunk_id"] for record in meter.records] == ["oil", "rope", "salt"]


def test_what_is_no_quotation_is_dropped_and_marked() -> None:
    (block, *_) = blocks_of(
        {"Delta": reply(True, "Delta needs two litres.", "a guess"), "Ropes": reply(False), "Salt": reply(False)}
    )
    assert block == Block(belongs=True, key_passage="", reason="a guess", problem=NOT_IN_TEXT)
    assert quoted_in(block.metadata()) == {"key_passage": "", "reason": f"a guess ({NOT_IN_TEXT})"}


@pytest.mark.parametrize("said", [ModelCallError("down"), "no JSON at all", reply("perhaps")], ids=str)
def test_a_failed_model_leaves_the_chunk_in(said: str | Exception) -> None:
    blocks = blocks_of({"Delta": reply(True), "Ropes": said, "Salt": reply(False)})
    assert (blocks[1].belongs, bool(blocks[1].problem)) == (None, True)
    judged = [with_block(each, block) for each, block in zip([OIL, ROPE, SALT], blocks, strict=True)]
    assert [each.metadata["chunk_id"] for each in left_in(judged)] == ["oil", "rope"]
    assert report_of(judged) == {"judged": 3, "taken_out": 1, "unknown": 1, "none_left": False}
    assert quoted_in(judged[1].metadata)["reason"].startswith("unknown: ")


def test_a_spent_budget_leaves_the_chunks_in() -> None:
    say: dict[str, str | Exception] = {"Delta": reply(False), "Ropes": reply(False), "Salt": reply(False)}
    blocks = blocks_of(say, meter=CallMeter(node="n", budget=TreeBudget(limit=1)))
    assert sorted(str(block.belongs) for block in blocks) == ["False", "None", "None"]


def test_a_setup_error_comes_after_all_other_calls() -> None:
    meter = CallMeter(node="n")
    with pytest.raises(ModelSetupError, match="no such model"):
        blocks_of({"Delta": ModelSetupError("no such model"), "Ropes": reply(True), "Salt": reply(True)}, meter=meter)
    assert [record["chunk_id"] for record in meter.records] == ["rope", "salt"]


def test_none_left_leaves_all_in() -> None:
    judged = [with_block(each, Block(belongs=False)) for each in (OIL, ROPE)]
    assert left_in(judged) == judged
    assert left_in([*judged, SALT]) == [*judged, SALT], "of an earlier round, and not judged"
    assert report_of(judged) == {"judged": 2, "taken_out": 0, "unknown": 0, "none_left": True}
    assert report_of([OIL, ROPE]) is None
    assert left_in([OIL, ROPE]) == [OIL, ROPE]


TEXTS = st.text("ab.? \n\t\"'“”。", max_size=40)


@given(TEXTS, TEXTS)
def test_a_quotation_is_always_a_part_of_the_text(text: str, quoted: str) -> None:
    found = quotation_in(text, quoted)
    assert found in text
    assert found.split() in ([], quoted.split(), quoted.strip(" \t\r\n\"'“”").split())


@given(TEXTS, st.integers(0, 40), st.integers(0, 40), st.sampled_from([" ", "\n", " \n "]))
def test_every_part_of_a_text_is_found_with_other_white_space(text: str, start: int, end: int, gap: str) -> None:
    part = text[start:end]
    assert quotation_in(text, f" {gap.join(part.split())} ").split() == part.split()


def test_a_long_key_passage_is_cut() -> None:
    long = chunk("long", "word " * 500)
    llm = FakeLLM(lambda _: reply(True, "word " * 400))
    (block,) = asyncio.run(InsertBlockFilter(llm).blocks("?", [long], meter=CallMeter(node="n")))
    assert len(block.key_passage) == MAX_KEY_PASSAGE
    assert block.key_passage in long.page_content
