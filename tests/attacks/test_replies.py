"""Whatever a model replies: a typed outcome within its time, on a loop that stays free, all of it fit to be saved."""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain_core.documents import Document

from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError
from judgetree.modules.judge.asker import question_in
from judgetree.modules.judge.contract import Verdict, sub_question_problem
from judgetree.modules.judge.generated import GeneratedJudge
from tests.modules.model_endpoints import RawEndpoint, chat_reply, llm_at, serve_raw, stream_reply

from .replies import REPLIES
from .watch import survive

LIMIT_S = 60.0
PIECES = 2_000


@pytest.fixture(scope="module")
def endpoint() -> RawEndpoint:
    with serve_raw() as server:
        yield server


def _is_storable(text: str) -> bool:
    return "\x00" not in text and text == text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_judge_survives_a_hostile_reply(endpoint: RawEndpoint, reply: str) -> None:
    endpoint.will_send(chat_reply(reply))
    judge = GeneratedJudge(llm_at(endpoint.base_url, retries=0), max_repairs=1)
    chunk = Document(page_content="The quay is long.", metadata={"chunk_id": "c"})
    verdict = survive(judge.judge("Who?", chunk, meter=CallMeter(node="judge")), limit_s=LIMIT_S)
    assert isinstance(verdict, Verdict)
    assert (verdict.status, verdict.score) in {("judged", 0), ("judged", 1), ("judged", 2), ("unknown", None)}
    assert (verdict.status == "unknown") <= bool(verdict.problem)
    assert all(map(_is_storable, (verdict.reason, verdict.next_query, verdict.problem)))
    assert len(json.dumps([verdict.reason, verdict.next_query, verdict.problem])) < 1_000_000
    assert not verdict.next_query or not sub_question_problem(verdict.next_query, "Who?")


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_reader_survives_a_hostile_stream(endpoint: RawEndpoint, reply: str) -> None:
    size = len(reply) // PIECES + 1
    endpoint.will_send(stream_reply(*({"content": reply[at : at + size]} for at in range(0, len(reply), size))))
    llm = llm_at(endpoint.base_url, retries=0)
    heard: list[object] = []

    async def read() -> str:
        try:
            completion = await llm.complete([("user", "?")], meter=CallMeter(node="generate"), on_text=heard.append)
        except ModelCallError as error:
            return str(error)
        return completion.text

    text = survive(read(), limit_s=LIMIT_S)
    assert text
    assert _is_storable(text)
    assert len(text) <= 1_000_000


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_sub_question_is_found_in_a_hostile_reply(reply: str) -> None:
    async def find() -> str:
        return await asyncio.sleep(0, question_in(reply))

    assert "\n" not in survive(find(), limit_s=LIMIT_S)
