"""Parts of one's own of every kind that fail by what is no common error: the failure is told, and nothing waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain_core.documents import Document
from langchain_core.tools import StructuredTool

from judgetree.evaluation.datasets.registry import ReadingOptions, load_own
from judgetree.evaluation.rows.trees import TreeStore
from judgetree.evaluation.scoring.own_metric import OwnMetric
from judgetree.evaluation.scoring.sample import MetricSample
from judgetree.graphs.search.candidate import SearchLimits, SearchProgress
from judgetree.graphs.search.policies.registry import create_policy
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.messages import CallOptions
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.factory import create_judge
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.parts import PartKind, instantiate, part_of, register_object
from judgetree.modules.retriever.own import create_own_retriever
from judgetree.modules.settings import load_settings
from judgetree.modules.tools.factory import create_tools

ERRORS = [
    asyncio.CancelledError(),
    StopIteration(1),
    SystemExit(0),
    BaseExceptionGroup("all", [SystemExit(1)]),
]
Run = Callable[[BaseException], object]


class Failing:
    """A judge, a retriever, a model and a policy, each method of which fails."""

    model = "failing"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def fingerprint(self) -> dict[str, str]:
        return {"kind": type(self._error).__name__}

    async def judge(self, *_: object, **__: object) -> None:
        raise self._error

    async def asearch(self, *_: object, **__: object) -> None:
        raise self._error

    async def complete(self, *_: object, **__: object) -> None:
        raise self._error

    def choose(self, *_: object) -> None:
        raise self._error

    def allows_retry(self, *_: object) -> None:
        raise self._error


def awaited(work: Coroutine[Any, Any, object]) -> object:
    return background_loop().run(asyncio.wait_for(work, 60))


def judged(error: BaseException) -> object:
    llm = create_llm("http://127.0.0.1:9/v1#m", load_settings(), CallGate(1))
    judge = create_judge(Failing(error), llm, spec="own")
    return awaited(judge.judge("Who?", Document(page_content=""), meter=CallMeter(node="judge")))  # type: ignore[union-attr]


def searched(error: BaseException) -> object:
    retriever = create_own_retriever(Failing(error), index=None, topk=3, settings=load_settings())
    return awaited(retriever.asearch("Who?", meter=CallMeter(node="retrieve")))


def completed(error: BaseException) -> object:
    llm = create_llm(register_object(Failing(error)), load_settings(), CallGate(1))
    return awaited(llm.complete([("user", "Who?")], meter=CallMeter(node="generate"), options=CallOptions()))


def used(error: BaseException) -> object:
    def fail(given: str) -> str:
        raise error

    (tool,) = create_tools([StructuredTool.from_function(fail, name="failing", description="Fails.")], load_settings())
    (result,) = awaited(tool.use("x"))  # type: ignore[misc]
    raise RuntimeError(result.page_content)  # an agent reads what failed


def scored(error: BaseException) -> object:
    def fail(sample: MetricSample) -> float:
        raise error

    metric = OwnMetric(part_of("metric", fail), TreeStore(Path()), llm=None, endpoint="", settings=load_settings())
    return awaited(metric.called(MetricSample(question="Who?", answer="Ada"), CallMeter(node="score")))


def chosen(error: BaseException) -> object:
    async def choose() -> object:  # as the loop of a search calls it
        return create_policy(Failing(error)).choose([], SearchProgress(), SearchLimits(max_calls=9))

    return awaited(choose())


def loaded(error: BaseException) -> object:
    def fail() -> None:
        raise error

    return load_own(register_object(fail), ReadingOptions())


def built(error: BaseException) -> object:
    def fail() -> None:
        raise error

    return instantiate(part_of("system", fail))


KINDS: Mapping[PartKind, Run] = {
    "system": built,
    "judge": judged,
    "retriever": searched,
    "metric": scored,
    "dataset": loaded,
    "tool": used,
    "llm": completed,
    "policy": chosen,
}


def test_parts_of_every_kind_are_tried() -> None:
    assert set(KINDS) == set(get_args(PartKind))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_a_part_that_fails_oddly_fails_by_an_error_that_says_how(kind: PartKind, error: BaseException) -> None:
    with pytest.raises(Exception, match=r"CancelledError|StopIteration|SystemExit|sys\.exit|all "):
        KINDS[kind](error)
