"""A call that is asked to wait: what the waits cost, how long they last, and how those who wait come back."""

from __future__ import annotations

import asyncio
import json

import pytest

from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError
from judgetree.modules.llm.endpoint import CallGate
from tests.modules.model_endpoints import (
    QUESTION,
    Answer,
    Clock,
    RawEndpoint,
    ask,
    chat_reply,
    llm_at,
)

LIMITED = (429, {}, json.dumps({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}))
LIMITED_A_MINUTE = (429, {"Retry-After": "60"}, "{}")


def test_waits_for_a_rate_limit_cost_no_attempts(raw: RawEndpoint) -> None:
    raw.will_send(*[LIMITED] * 8, (500, {}, "{}"), *[LIMITED] * 3, chat_reply("42"))
    meter, clock = CallMeter(node="generate"), Clock()
    assert ask(llm_at(raw.base_url, retries=1, sleep=clock.sleep), meter).text == "42"
    assert (meter.records[0]["attempts"], len(clock.slept_s)) == (13, 12)


@pytest.mark.parametrize("answer", [LIMITED, LIMITED_A_MINUTE], ids=["without a time", "a minute each"])
def test_waits_for_a_rate_limit_have_a_cap_in_all(raw: RawEndpoint, answer: Answer) -> None:
    raw.will_send(answer)
    meter, clock = CallMeter(node="generate"), Clock()
    with pytest.raises(ModelCallError, match=r"after \d{3} s of waiting for its rate limit") as caught:
        ask(llm_at(raw.base_url, retries=0, sleep=clock.sleep), meter)
    assert not isinstance(caught.value, ModelSetupError | ModelRequestError)
    assert 400 < sum(clock.slept_s) <= 600
    assert meter.records[0]["attempts"] == len(clock.slept_s) + 1


def test_those_who_were_asked_to_wait_together_come_back_apart(raw: RawEndpoint) -> None:
    raw.will_send(*[(429, {"Retry-After": "8"}, "{}")] * 6, chat_reply("42"))
    clock = Clock()

    async def together() -> None:
        llm = llm_at(raw.base_url, gate=CallGate(6), sleep=clock.sleep)
        await asyncio.gather(*(llm.complete(QUESTION, meter=CallMeter(node="judge")) for _ in range(6)))

    background_loop().run(together())
    assert len({round(slept_s, 4) for slept_s in clock.slept_s}) == 6
    assert all(8 <= slept_s <= 10 for slept_s in clock.slept_s)
