"""Recordings judged anew by the noisy judge: as that judge would have recorded them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from langchain_core.documents import Document

from judgetree.evaluation.datasets.questions import CorpusDocument, Dataset, EvalQuestion
from judgetree.evaluation.replay.noisy_world import NoisyWorld
from judgetree.evaluation.replay.play import Episode, run_episode
from judgetree.evaluation.replay.recorder import record
from judgetree.evaluation.replay.recording import FILE_NAME, SearchRecording
from judgetree.evaluation.replay.world import JudgedChunk, JudgedQuery, RecordedWorld, ReplayEnvironment
from judgetree.evaluation.runs.gold import gold_table
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.search.policies.registry import create_policy
from judgetree.graphs.search.stop import create_stop
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.judge.noise import Noise
from judgetree.modules.judge.noisy import NoisyWriter, noisy_judge
from tests.graphs.bushy import draw
from tests.graphs.fakes import FakeLLM

NAMES = ("Alpha", "Beta", "Gamma", "Delta", "Echo", "Foxtrot")
QUESTIONS = {f"Question {number}?": NAMES[number % 3 : number % 3 + 3] for number in range(12)}
DATASET = Dataset(
    name="hops",
    questions=tuple(
        EvalQuestion(id=text, question=text, answers=("yes",), supporting=gold, distractors=NAMES)
        for text, gold in QUESTIONS.items()
    ),
    documents=tuple(CorpusDocument(key=name, title=name, text=f"{name}: text") for name in NAMES),
)


@dataclass
class Finder:
    """Finds four documents: first one that the query names, mostly, then others."""

    def fingerprint(self) -> dict[str, str]:
        return {"collection": "hops"}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        order = sorted(NAMES, key=lambda name: draw(query, name) - (0.7 if f'"{name}"' in query else 0.0))
        metadata = ({"chunk_id": name, "title": name, "document_key": name} for name in order[:4])
        return [(Document(page_content=f"{each['title']}: text", metadata=each), 1.0) for each in metadata]


def outcome(world: ReplayEnvironment, policy: str, stop: str) -> tuple[object, ...]:
    limits = Limits(max_rec_depth=2, max_llm_calls=40, width=1)
    played: Episode = run_episode(world, create_policy(policy), create_stop(stop), limits)
    chosen = [(each.candidate.path, each.found, each.suffices) for each in played.expansions]
    return played.calls, played.found, played.misses, chosen


@pytest.mark.parametrize("sees_wrong_questions", [False, True])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("auc", [1.0, 0.8])
def test_a_noisy_recording_replays_under_its_own_judge_as_recorded(
    tmp_path: Path, auc: float, batched: bool, sees_wrong_questions: bool
) -> None:
    noise = Noise(auc=auc, writer=0.6, batched=batched, sees_wrong_questions=sees_wrong_questions)
    table = gold_table(DATASET)
    context = RagContext(
        reader=FakeLLM(lambda messages: "yes"),
        retriever=Finder(),
        judge=noisy_judge(table, noise),
        writer=NoisyWriter(table, noise),
    )
    recording = SearchRecording(tmp_path / FILE_NAME, of={"depth": "2", "tries": "2"})
    record(DATASET, recording, context, depth=2, width=2)
    worlds = SearchRecording(tmp_path / FILE_NAME).worlds()
    grants = 0
    for policy, stop in (("best_first", "set"), ("wider:tries=2", "any"), ("breadth", "never")):
        for world in worlds.values():
            recorded, anew = (outcome(each, policy, stop) for each in (world, NoisyWorld(world, noise)))
            assert recorded == anew
            grants += len(recorded[3])  # type: ignore[arg-type]
    assert grants > len(worlds)


def found(*names: str) -> JudgedQuery:
    chunks = (JudgedChunk(chunk_id=name, keys=frozenset(name), rank=rank) for rank, name in enumerate(names))
    return JudgedQuery(chunks=tuple(chunks))


def test_a_sub_question_needs_what_its_asker_lacks_beside_the_chunk() -> None:
    questions = {"root": {"a": ("after a?",), "x": ("after x?", "after a?")}, "after x?": {"b": ("after b?",)}}
    queries = {
        "root": found("a", "x"),
        "after a?": found("b", "a"),
        "after x?": found("b", "x"),
        "after b?": found("a", "b"),
    }
    world = RecordedWorld(question="root", gold=frozenset("ab"), queries=queries, questions=questions, tries=2)

    def scores(noise: Noise, query: str) -> tuple[list[int | None], bool | None]:
        judged = NoisyWorld(world, noise).judged(query)
        return [each.score for each in judged.chunks], judged.set_suffices

    single, batched = Noise(), Noise(batched=True)
    assert scores(single, "root") == ([1, 0], None)
    assert scores(single, "after a?") == ([2, 0], None)  # needs b alone, as the first that asks it has a
    assert scores(single, "after x?") == ([1, 0], None)  # x is not needed, so both are still missing
    assert scores(single, "after b?") == ([2, 0], None)
    assert [scores(batched, query)[1] for query in queries] == [False, True, False, True]
    assert scores(batched, "after a?")[0] == [1, 0]
