"""Recorders pay for nothing twice, take no failure for a verdict, and end with everything that they began."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import pytest
from langchain_core.documents import Document

from judgetree.evaluation.datasets.questions import Dataset, EvalQuestion
from judgetree.evaluation.record_and_replay import replay_recording
from judgetree.evaluation.replay.recorder import Coverage, _recorded, record
from judgetree.evaluation.replay.recording import FILE_NAME, SearchRecording
from judgetree.evaluation.replay.recording_lines import RecordedJudgement, RecordedQuestion
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import LoadingError, ModelCallError, ModelSetupError, NoQuestion, SettingsError
from judgetree.modules.judge.contract import SetVerdict, Verdict
from tests.graphs.bushy import ROOT, BushyJudge, BushyWriter, Timing, bushy_context

DEPTH, TRIES = 1, 2


def dataset(*questions: str) -> Dataset:
    rows = (
        EvalQuestion(id=f"{number}", question=each, answers=("an answer",), supporting=(f"{each}/0/1",))
        for number, each in enumerate(questions)
    )
    return Dataset(name="bushy", questions=tuple(rows), key_field="chunk_id")


def opened(folder: Path) -> SearchRecording:
    return SearchRecording(folder / FILE_NAME, of={"depth": str(DEPTH), "tries": str(TRIES)})


def recorded(
    folder: Path, context: RagContext, *questions: str, concurrency: int = 8, fail_after: float = 10
) -> Coverage:
    return record(
        dataset(*(questions or (ROOT,))),
        opened(folder),
        context,
        depth=DEPTH,
        width=TRIES,
        concurrency=concurrency,
        fail_after=fail_after,
    )


def judgements(folder: Path) -> dict[str, RecordedJudgement]:
    recording = opened(folder)
    queries = [ROOT, *(f"{ROOT}/{chunk}{again}" for chunk in range(3) for again in ("", "~0", "~1"))]
    return {query: found for query in queries if (found := recording.judgement(query))}


@dataclass
class FailingJudge(BushyJudge):
    """Fails for some chunks, after a call that is paid."""

    fails: str = ""
    """Pattern of the ids of these chunks; none match ""."""
    asked: list[str] = field(default_factory=list)

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        self.asked.append(chunk.metadata["chunk_id"])
        verdict = await super().judge(query, chunk, meter=meter, expand=expand)
        if re.fullmatch(self.fails, chunk.metadata["chunk_id"]):
            raise RuntimeError("the endpoint is down")
        return verdict


@dataclass
class FailingSetJudge:
    """Has no verdict on the last chunk of a set where it fails; its calls are one paid and one cached."""

    inner: FailingJudge
    fails: bool = False
    made: int = 0

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "set"}

    def expected_calls(self, chunks: int) -> int:
        return 1

    async def judge_set(
        self, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool = True
    ) -> SetVerdict:
        self.made += 1
        meter.reserve()
        meter.record(kind="chat", model="set", started=time.perf_counter())
        meter.record_cached(meter.records[-1])
        free = CallMeter(node="judge")
        verdicts = [await self.inner.judge(query, each, meter=free, expand=expand) for each in chunks]
        if self.fails:
            verdicts[-1] = Verdict(status="unknown", problem="no entry")
        return SetVerdict(verdicts=tuple(verdicts), suffices=False)


@dataclass
class FailingWriter(BushyWriter):
    error: Exception | None = None
    made: int = 0

    async def write(self, query: str, chunk: Document, tried: Sequence[str], *, meter: CallMeter) -> str:
        self.made += 1
        if self.error is not None and chunk.metadata["chunk_id"] == f"{ROOT}/1":
            raise self.error
        return await super().write(query, chunk, tried, meter=meter)


def failing(fails: str = "", error: Exception | None = None) -> RagContext:
    judge, writer = FailingJudge(0, Timing(0), fails=fails), FailingWriter(error)
    return replace(bushy_context("breadth"), judge=judge, writer=writer)


def asked_of(context: RagContext) -> list[str]:
    assert isinstance(context.judge, FailingJudge)
    return context.judge.asked


def test_unknown_verdicts_are_counted_and_asked_for_again_alone(tmp_path: Path) -> None:
    whole, damaged, again, idle = failing(), failing("q/1|q/0/2"), failing(), failing()
    recorded(tmp_path / "whole", whole)
    coverage = recorded(tmp_path / "parts", damaged)
    assert (coverage.unknown, coverage.failed) == (2, ())
    replayed = replay_recording(tmp_path / "parts", policies=("breadth",), budgets=(8,))
    assert replayed.to_document()["unknown_verdicts"] == 2
    assert any(words.startswith("2 recorded verdicts unknown") for words in replayed.words())

    assert recorded(tmp_path / "parts", again).unknown == 0
    kept = set(asked_of(damaged)) - {"q/1", "q/0/2"}
    assert not kept & set(asked_of(again))
    wanted = judgements(tmp_path / "whole")
    assert {query: judgements(tmp_path / "parts")[query] for query in wanted} == wanted
    recorded(tmp_path / "parts", idle)
    assert asked_of(idle) == []
    assert replay_recording(tmp_path / "parts", policies=("breadth",), budgets=(8,)).of["unknown_verdicts"] == 0


def test_of_a_set_what_was_judged_stays_and_cached_calls_count(tmp_path: Path) -> None:
    judges = [FailingSetJudge(FailingJudge(seed, Timing(0)), fails=seed == 0) for seed in (0, 1)]
    first, second = (replace(bushy_context("breadth"), judge=judge) for judge in judges)
    assert recorded(tmp_path, first).unknown > 0
    before = judgements(tmp_path)[ROOT]
    assert before.calls == 2
    assert recorded(tmp_path, second).unknown == 0
    after = judgements(tmp_path)[ROOT]
    assert after.judged.chunks[:2] == before.judged.chunks[:2]
    assert after.judged.chunks[2].verdict == "judged"
    assert after.calls == 2


@pytest.mark.parametrize(("error", "unwritten"), [(ModelCallError("HTTP 500"), 1), (NoQuestion("none is left"), 0)])
def test_questions_that_a_failed_call_left_out_are_written_later(
    tmp_path: Path, error: Exception, unwritten: int
) -> None:
    assert recorded(tmp_path, failing(error=error)).unwritten == unwritten
    again = failing()
    assert recorded(tmp_path, again).unwritten == 0
    assert isinstance(again.writer, FailingWriter)
    assert (again.writer.made > 0) == bool(unwritten)
    assert len(judgements(tmp_path)[ROOT].questions[f"{ROOT}/1"]) == (TRIES if unwritten else 1)


def test_an_endpoint_without_any_verdict_ends_the_recording(tmp_path: Path) -> None:
    questions = ("a", "b", "c")
    dead = r"Stopped: 2 of 2 questions could not be recorded\. .*RuntimeError: the endpoint is down.* same command"
    for _ in range(2):
        with pytest.raises(ModelSetupError, match=dead):
            recorded(tmp_path, failing(".*"), *questions, concurrency=1, fail_after=2)
    with pytest.raises(LoadingError, match="None of the 3 questions"):
        replay_recording(tmp_path)
    of_one = failing("c/.*")
    coverage = recorded(tmp_path, of_one, *questions)
    assert (coverage.failed, coverage.failure) == (("2",), "RuntimeError: the endpoint is down")
    replayed = replay_recording(tmp_path, policies=("breadth",), budgets=(8,))
    assert (replayed.of["questions"], replayed.of["unfinished"]) == (2, 1)
    assert any(words.startswith("1 question left out") for words in replayed.words())
    assert recorded(tmp_path, failing(), *questions).failed == ()


def test_a_query_that_several_ask_at_once_is_searched_and_judged_once(tmp_path: Path) -> None:
    alone, together = failing(), failing()
    recorded(tmp_path / "alone", alone)
    coverage = recorded(tmp_path / "together", together, ROOT, ROOT, ROOT)
    assert sorted(asked_of(together)) == sorted(asked_of(alone))
    lines = (tmp_path / "together" / FILE_NAME).read_text().splitlines()
    assert sum('{"judgement"' in line for line in lines) == coverage.queries


def test_a_query_of_the_deepest_level_that_is_expanded_keeps_the_verdicts_that_ask_nothing(tmp_path: Path) -> None:
    alone, both = failing(), failing()
    recorded(tmp_path / "alone", alone, f"{ROOT}/0")
    recorded(tmp_path / "both", both, ROOT, f"{ROOT}/0", concurrency=1)
    found = judgements(tmp_path / "both")[f"{ROOT}/0"]
    assert found == judgements(tmp_path / "alone")[f"{ROOT}/0"]
    times = [asked_of(both).count(each.chunk_id) for each in found.judged.chunks]
    assert times == [2 if each.score == 1 else 1 for each in found.judged.chunks]
    assert set(times) == {1, 2}


def test_an_error_of_all_ends_the_judgements_beside_it(tmp_path: Path) -> None:
    ended: list[str] = []

    class RejectedJudge(FailingJudge):
        async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
            if len(self.asked) == 2:
                raise SettingsError("rejected")
            self.asked.append(chunk.metadata["chunk_id"])
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(chunk.metadata["chunk_id"])
            raise AssertionError("nothing sets the event")

    context = replace(failing(), judge=RejectedJudge(0, Timing(0)))
    with pytest.raises(SettingsError, match="rejected"):
        recorded(tmp_path, context)
    assert sorted(ended) == ["q/0", "q/1"]


def test_a_recorded_question_has_all_that_its_scores_depend_on() -> None:
    """Or replays would score otherwise than runs."""
    no_matter = {"type", "hops", "supporting", "distractors", "facts", "turn", "shares"}
    kept = {each.name for each in fields(RecordedQuestion)} - {"gold"}
    assert {each.name for each in fields(EvalQuestion)} - no_matter == kept
    asked = EvalQuestion(id="q", question="?", answers=("Québec",), answers_known=True, lang="fr", folds_letters=True)
    recorded = _recorded(asked)
    assert EvalQuestion(**{name: getattr(recorded, name) for name in kept}) == asked
