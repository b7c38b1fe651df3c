"""A call that LangChain's callbacks hear of is the same as one that nothing hears of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.outputs import LLMResult

from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError
from tests.modules.llm.test_streaming import counted
from tests.modules.model_endpoints import Answer, RawEndpoint, Snapshots, ask, chat_reply, llm_at, stream_reply

USED = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
ANSWERS: dict[str, Answer] = {
    "whole": counted(chat_reply("42"), 7),
    "reasoning": chat_reply("42", reasoning_content="six by nine"),
    "refusal": chat_reply(None, refusal="I may not."),
    "stream": stream_reply({"content": "<think>six"}, {"content": " by nine</think>4"}, {"content": "2"}),
    "empty stream": (200, {"Content-Type": "text/event-stream"}, "data: [DONE]\n\n"),
    "cut stream": (200, {"Content-Type": "text/event-stream"}, 'data: {"choices": []}\n\n'),
    "error": (200, {}, json.dumps({"error": {"message": "no such thing"}, "usage": USED})),
    "bad request": (400, {}, json.dumps({"error": {"message": "no such thing"}})),
}


class Ears(BaseCallbackHandler):
    """Writes down what it hears of calls."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.heard.append("start")

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.heard.append(response.generations[0][0].text)

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.heard.append("error")


def outcome(raw: RawEndpoint, answer: Answer, *, streamed: bool, heard_by: list[BaseCallbackHandler]) -> object:
    """Everything that a caller learns of a call, but for times and ids."""
    raw.will_send(answer)
    meter, texts = CallMeter(node="generate"), Snapshots()
    try:
        completion = ask(llm_at(raw.base_url, retries=0), meter, on_text=texts if streamed else None, heard_by=heard_by)
    except ModelCallError as error:
        said: object = (type(error), str(error))
    else:
        said = completion
    records = [{**record, "call_id": "", "seconds": 0.0, "ended_at": 0.0} for record in meter.records]
    return said, [*texts], records, raw.bodies


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_call_is_the_same_whether_or_not_it_is_heard(raw: RawEndpoint, name: str, streamed: bool) -> None:
    ears = Ears()
    heard = outcome(raw, ANSWERS[name], streamed=streamed, heard_by=[ears])
    assert ears.heard[0] == "start"
    assert heard == outcome(raw, ANSWERS[name], streamed=streamed, heard_by=[])


@pytest.mark.parametrize("heard_by", [[], [Ears()]], ids=["unheard", "heard"])
def test_a_cache_of_langchain_s_answers_no_call(raw: RawEndpoint, heard_by: list[BaseCallbackHandler]) -> None:
    """It keeps no tokens, so that what was paid could not be told."""
    raw.will_send(chat_reply("42"))
    llm = llm_at(raw.base_url)
    set_llm_cache(InMemoryCache())
    try:
        assert [ask(llm, heard_by=heard_by).text for _ in range(2)] == ["42", "42"]
    finally:
        set_llm_cache(None)
    assert len(raw.bodies) == 2
