"""Recordings: exhaustive, resumable, refused where they are something else's, and replayed as recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.evaluation.datasets.questions import Dataset, EvalQuestion
from judgetree.evaluation.record_and_replay import replay_recording
from judgetree.evaluation.replay.play import run_episode
from judgetree.evaluation.replay.recorder import record
from judgetree.evaluation.replay.recording import FILE_NAME, SearchRecording
from judgetree.evaluation.rows.json_lines import append_line
from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.search.policies.registry import create_policy
from judgetree.graphs.search.stop import create_stop
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.errors import LoadingError, SettingsError
from tests.eval.replay.test_play import grants_of
from tests.graphs.bushy import ROOT, BushyJudge, bushy_context
from tests.graphs.fakes import thread

OF = {"judge.kind": "bushy", "depth": "2"}
DATASET = Dataset(
    name="bushy",
    questions=(EvalQuestion(id="one", question=ROOT, answers=("an answer",), supporting=("q/0/1", "q/2/0")),),
    key_field="chunk_id",
)


def recorded(
    folder: Path, context: RagContext, *, depth: int = 2, width: int = 1, max_llm_calls: int = 1000
) -> SearchRecording:
    recording = SearchRecording(folder / FILE_NAME, of={**OF, "depth": str(depth), "tries": str(width)})
    record(DATASET, recording, context, depth=depth, width=width, max_llm_calls=max_llm_calls)
    return recording


def made(context: RagContext) -> int:
    assert isinstance(context.judge, BushyJudge)
    return context.judge.made


@pytest.mark.parametrize("policy", ["breadth", "best_first", "wider:tries=2"])
def test_a_recording_replays_as_the_live_search(tmp_path: Path, policy: str) -> None:
    limits = {"max_rec_depth": 2, "max_llm_calls": 30, "width": 1}
    with build_judge_rag(context=bushy_context(policy, **limits)) as graph:
        graph.invoke(ROOT, thread("t"))
        live = SearchTree.from_history(graph, "t")
    world = recorded(tmp_path, bushy_context("breadth"), width=2).worlds()["one"]
    played = run_episode(world, create_policy(policy), create_stop("set"), Limits(**limits))
    assert {each.candidate.next_query: (each.round, each.priority) for each in played.expansions} == grants_of(live)
    assert (played.calls, played.misses) == (live.usage["llm_calls"], 0)


def test_a_recording_goes_on_where_it_stopped_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    whole = bushy_context("breadth")
    queries = recorded(tmp_path / "whole", whole).queries
    first, second, third = (bushy_context("breadth") for _ in range(3))
    stopped = recorded(tmp_path / "parts", first, max_llm_calls=10)
    assert 0 < stopped.queries < queries
    with pytest.raises(LoadingError, match=r"None of the 1 questions of .* is recorded to its end"):
        replay_recording(tmp_path / "parts")
    file = tmp_path / "parts" / FILE_NAME
    with file.open("ab") as torn:
        torn.write(b'{"judgement": {"query": "q/')
    assert recorded(tmp_path / "parts", second).queries == queries
    assert made(first) + made(second) == made(whole)
    recorded(tmp_path / "parts", third)
    assert made(third) == 0


HEAD = '{"format": "judgetree-recording/5", "of": %s}'
THEIRS = '{"judge.kind": "a", "depth": "2", "tries": "1"}'
OURS = json.dumps({**OF, "tries": "1"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "judgetree-rows/1", "of": {}}', "has the format 'judgetree-rows/1'; this judgetree reads"),
        ("[" * 100_000, "line 1 is damaged: maximum recursion depth"),
        (HEAD % '{"tries": "1"}', "line 1 is damaged: depth: Field required"),
        (HEAD % '{"depth": "x", "tries": "1"}', "line 1 is damaged: depth: "),
        (HEAD % '{"depth": "1", "tries": "-1"}', "line 1 is damaged: tries: "),
        (HEAD % OURS + '\n{"hits": 3}', "line 2 is damaged: query: Field required"),
        (HEAD % OURS + '\n\n{"finds": 3}', "line 3 is damaged: unknown line"),
        (HEAD % THEIRS, "something else .*'a' then, 'bushy' now"),
    ],
)
def test_another_or_damaged_recording_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(text + "\n")
    with pytest.raises(LoadingError, match=message):
        SearchRecording(file, of={**OF, "tries": "1"})


CHUNK = {"chunk_id": "q/0", "keys": [], "rank": 0}
JUDGED = {"query": ROOT, "judged": {"chunks": [CHUNK]}, "questions": {}}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("[" * 100_000, "maximum recursion depth"),
        ({"judgement": {**JUDGED, "judged": {"chunks": [{**CHUNK, "score": 7}]}}}, "less than or equal to 2"),
        ({"judgement": {**JUDGED, "judged": {"chunks": [{**CHUNK, "p_needed": 5}]}}}, "less than or equal to 1"),
        ({"judgement": {**JUDGED, "judged": {"chunks": [{**CHUNK, "p_needed": float("nan")}]}}}, "p_needed: "),
        ({"judgement": {**JUDGED, "judged": {"chunks": [{**CHUNK, "rank": -1}]}}}, "greater than or equal to 0"),
        ({"judgement": {**JUDGED, "judged": {"chunks": [CHUNK, CHUNK]}}}, "does not judge what its query finds"),
        ({"judgement": {**JUDGED, "query": "unknown"}}, "does not judge what its query finds"),
        ({"judgement": {**JUDGED, "questions": {"unknown": ["why?"]}}}, "asks an unknown chunk"),
        ({"query": "unknown", "hits": [["unknown", 0.5]]}, "finds a chunk without a text"),
        ({"query": "twice", "hits": [["q/0", 0.5], ["q/0", 0.4]]}, "finds a chunk twice"),
        ({"query": "nan", "hits": [["q/0", float("nan")]]}, "finite number"),
        ({"chunk": "q/9", "text": "text", "metadata": {}}, "its chunk has another id"),
        ({"question_id": "unknown", "is_done": True}, "its question is unknown"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: object, fault: str) -> None:
    recorded(tmp_path, bushy_context("breadth", topk=1), depth=0)
    file = tmp_path / FILE_NAME
    lines = len(file.read_bytes().splitlines())
    append_line(file, (line if isinstance(line, str) else json.dumps(line)).encode())
    with pytest.raises(LoadingError, match=rf"line {lines + 1} is damaged: .*{fault}.* Record it again"):
        SearchRecording(file)


@pytest.mark.parametrize("lost", [0, 1, -1])
def test_a_finished_mark_without_all_judgements_is_not_believed(tmp_path: Path, lost: int) -> None:
    recorded(tmp_path, bushy_context("breadth"))
    file = tmp_path / FILE_NAME
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    judgements = [line for line in lines if line.startswith(b'{"judgement"')]
    file.write_bytes(b"".join(line for line in lines if line != judgements[lost]))
    assert SearchRecording(file).finished == {}
    context = bushy_context("breadth")
    assert [*recorded(tmp_path, context).finished] == ["one"]
    assert made(context) == 3  # the chunks of that query alone
    assert [*SearchRecording(file).finished] == ["one"]


def test_readers_leave_a_torn_last_line_to_the_process_that_records(tmp_path: Path) -> None:
    whole = recorded(tmp_path, bushy_context("breadth", topk=1), depth=1)
    file = tmp_path / FILE_NAME
    with file.open("ab") as written:
        written.write(b'{"judgement": {"query": "q/')
    before = file.read_bytes()
    assert SearchRecording(file).queries == whole.queries
    assert file.read_bytes() == before
    file.write_bytes(before[:9])
    with pytest.raises(LoadingError, match="line 1 is damaged"):
        SearchRecording(file)
    assert recorded(tmp_path, bushy_context("breadth", topk=1), depth=1).queries == whole.queries


def test_a_replay_names_what_it_was_not_given(tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match=r"does not exist. `judgetree eval record` makes a recording"):
        replay_recording(tmp_path)
    recorded(tmp_path, bushy_context("breadth"))
    with pytest.raises(SettingsError, match=r"auc=2\.0 is not allowed"):
        replay_recording(tmp_path, judge="noisy:auc=2")
    with pytest.raises(SettingsError, match=r"written by a model.*--judge noisy:auc=\.8,sees_wrong_questions=yes\."):
        replay_recording(tmp_path, judge="noisy:auc=.8")
    assert len(replay_recording(tmp_path, judge="noisy:auc=.8,sees_wrong_questions=yes").rows) > 0
    with pytest.raises(SettingsError, match="Unknown policy 'nearest'"):
        replay_recording(tmp_path, policies=("nearest",))


def test_a_policy_that_leaves_the_recording_says_so(tmp_path: Path) -> None:
    recorded(tmp_path, bushy_context("breadth"))
    policies = ("breadth", "wider:least=1")
    summary = replay_recording(tmp_path, policies=policies, budgets=(60,), depth=2).summary
    assert dict(zip(summary["policy"], summary["coverage"], strict=True)) == {"breadth": 1.0, "wider:least=1": 0.0}
