"""Whatever a server does, a call ends within its time, with an error of the right kind."""

from __future__ import annotations

import pytest

from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError
from judgetree.modules.llm.endpoint import EndpointLLM
from tests.modules.model_endpoints import llm_at

from .servers import OTHER, PAGE, REQUEST, SETUP, Misbehaviour, misbehaving
from .watch import survive

FINAL = {ModelSetupError: SETUP, ModelRequestError: REQUEST}
TIMEOUT_S = 0.5
LIMIT_S = 60.0


def _failure(llm: EndpointLLM, *, streams: bool) -> ModelCallError:
    async def call() -> ModelCallError:
        with pytest.raises(ModelCallError) as caught:
            await llm.complete([("user", "?")], meter=CallMeter(node="generate"), on_text=_ignore if streams else None)
        return caught.value

    return survive(call(), limit_s=LIMIT_S)


def _ignore(text: object) -> None:
    pass


REFUSALS = [(behave, kind) for kind, refusals in FINAL.items() for behave in refusals.values()]
NAMES = [name for refusals in FINAL.values() for name in refusals]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("behave", "kind"), REFUSALS, ids=NAMES)
def test_a_refusal_for_good_is_not_repeated(behave: Misbehaviour, kind: type[ModelCallError], streams: bool) -> None:
    with misbehaving(behave) as server:
        failure = _failure(llm_at(server.base_url, retries=3, timeout_s=TIMEOUT_S), streams=streams)
        assert isinstance(failure, kind)
        assert server.asked <= 2  # a refused stream is asked for once more, whole


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_page_in_place_of_a_reply_is_tried_again_and_then_a_fault_of_the_address(streams: bool) -> None:
    with misbehaving(PAGE) as server:
        failure = _failure(llm_at(server.base_url, retries=1, timeout_s=TIMEOUT_S), streams=streams)
        assert isinstance(failure, ModelSetupError)
        assert "in attempt 2 of 2" in str(failure)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("behave", OTHER.values(), ids=OTHER)
def test_a_server_that_misbehaves_fails_the_attempt_in_time(behave: Misbehaviour, streams: bool) -> None:
    with misbehaving(behave) as server:
        failure = _failure(llm_at(server.base_url, retries=1, timeout_s=TIMEOUT_S), streams=streams)
        assert not isinstance(failure, ModelSetupError | ModelRequestError)
        assert "127.0.0.1" in str(failure)
