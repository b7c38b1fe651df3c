"""A judge around another one, which asks inside a context or changes its verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from langchain_core.documents import Document

from ..calls.usage import CallMeter
from ..parts import result_of_coroutine
from .contract import AnyJudge, Judge, SetJudge, SetVerdict, Verdict, expected_calls, judges_sets

Around = Callable[[CallMeter], AbstractContextManager[object]]
Change = Callable[[Verdict], Verdict]


def wrapped(
    judge: AnyJudge,
    *,
    around: Around = lambda meter: nullcontext(),
    change: Change | None = None,
    fingerprint: Callable[[], dict[str, str]] | None = None,
) -> AnyJudge:
    """Return a judge that asks ``judge``, chunk by chunk or for all chunks, as that one takes them.

    Args:
        judge: The inner judge.
        around: Makes the context in which the inner judge is asked, from the meter of the calls.
        change: Changes each verdict; None: no verdict.
        fingerprint: Returns the fingerprint; None: that of the inner judge.
    """
    wrapper = _WrappedSets if judges_sets(judge) else _Wrapped
    return wrapper(judge, around, change, fingerprint or judge.fingerprint)


class _Wrapper:
    def __init__(
        self, inner: AnyJudge, around: Around, change: Change | None, fingerprint: Callable[[], dict[str, str]]
    ) -> None:
        self._inner = inner
        self._around = around
        self._change = change
        self._fingerprint = fingerprint

    def fingerprint(self) -> dict[str, str]:
        return self._fingerprint()

    def expected_calls(self, chunks: int) -> int:
        return expected_calls(self._inner, chunks)


class _Wrapped(_Wrapper):
    _inner: Judge

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        with self._around(meter):
            given = await result_of_coroutine(self._inner.judge(query, chunk, meter=meter, expand=expand), "judge")
        return self._change(given) if self._change else given


class _WrappedSets(_Wrapper):
    _inner: SetJudge

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        with self._around(meter):
            judging = self._inner.judge_set(query, chunks, meter=meter, expand=expand)
            given = await result_of_coroutine(judging, "judge_set")
        return replace(given, verdicts=tuple(map(self._change, given.verdicts))) if self._change else given
