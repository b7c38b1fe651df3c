"""Batch runs over dialogues: rows of conversations that a system leads, or of turns that are asked alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.rows.trees import TreeStore
from judgetree.evaluation.runs.batch_run import RunOptions
from judgetree.evaluation.runs.pilot import estimate_run
from judgetree.evaluation.runs.runner import Progress
from judgetree.evaluation.runs.turn_asker import memory_of
from judgetree.graphs.conversations import Conversations
from judgetree.modules.errors import SettingsError, UserError
from tests.app.talks import DRUM, FIRST, STANDALONE_THICKNESS, THICKNESS
from tests.eval.dataset_files import write_list
from tests.eval.dialogue_bench import FORK, LINE, TURNS, Bench, facts, opened, turn
from tests.eval.run_rows import tree_figures


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A finished run of two systems; nothing of it may be changed."""
    with opened(tmp_path_factory.mktemp("prepared")) as bench:
        bench.run(systems=("naive", "judge"), concurrency=2)
        yield bench


@pytest.fixture
def bench(tmp_path: Path, prepared: Bench) -> Iterator[Bench]:
    """A bench whose corpus is indexed and embedded."""
    with opened(tmp_path, home=prepared.settings.home) as fresh:
        yield fresh


def test_every_turn_is_a_row_with_what_its_conversation_made_of_it(prepared: Bench) -> None:
    rows = prepared.rows()
    assert set(rows) == {
        (system, turn(dialogue, number))
        for system in ("naive", "judge")
        for dialogue, turns in ((LINE, 5), (FORK, 4))
        for number in range(1, turns + 1)
    }
    for system in ("naive", "judge"):
        talk = [rows[system, turn(LINE, number)] for number in range(1, 6)]
        assert [row.prediction for row in talk[:4]] == ["the drum", "40 mm", "the drum", "grey"]
        assert [row.status for row in talk] == [*["answered"] * 4, "refused"]
        told = [facts(row) for row in talk]
        assert [(each.number, each.path_length) for each in told] == [(number, number) for number in range(1, 6)]
        assert [each.answered_from for each in told] == ["search", "search", "history", "search", "search"]
        assert [each.standalone_query for each in told[:2]] == [FIRST, STANDALONE_THICKNESS]
        assert [[chunk.key for chunk in each.reused] for each in told] == [[], [], ["a.md"], [], []]
        gold = [each.relevant_turns for each in DRUM.turns]
        assert [each.needed_turns for each in told] == gold, "the scripted model selects what the gold names"
        assert told[2].retrieved == {"raw": (), "joined": ("b.md",), "rewrite": ("a.md",), "human": ("a.md",)}
        assert told[4].retrieved == {}, "nobody knows what should be found for what cannot be answered"
        assert len({each.conversation for each in told}) == 1
    assert rows["naive", turn(LINE, 1)].conversation != rows["judge", turn(LINE, 1)].conversation


def test_tree_is_kept_of_searches_and_calls_count_once(prepared: Bench) -> None:
    rows, trees = prepared.rows(), TreeStore(prepared.out)
    for row in rows.values():
        tree = trees.read(row.thread_id)
        assert (tree is None) == (row.tree is None) == (facts(row).answered_from == "history")
        assert tree is None or tree.root.thread_id == facts(row).rag_thread_id
        own, found = facts(row).own, row.tree or tree_figures()
        assert row.paid_llm_calls == own.calls + found.llm_calls
        assert row.tokens == own.tokens + found.prompt_tokens + found.completion_tokens
    assert sum(row.paid_llm_calls for row in rows.values()) == prepared.requests()
    history = rows["naive", turn(LINE, 3)], rows["judge", turn(LINE, 3)]
    assert {facts(row).own.calls + facts(row).own.cached_calls for row in history} == {3}


def test_branch_follows_the_turn_that_it_goes_back_to(prepared: Bench) -> None:
    rows = prepared.rows()
    first, fork = (facts(rows["naive", turn(FORK, number)]) for number in (1, 4))
    assert (fork.path_length, fork.standalone_query) == (2, STANDALONE_THICKNESS)
    settings = prepared.settings.model_copy(
        update={
            "checkpoints": f"sqlite:///{prepared.out / 'checkpoints.sqlite'}",
            "conversation_collection": memory_of(run_id(prepared)),
        }
    )
    with Conversations(system="llm", settings=settings) as talks:
        kept = {pair["turn_id"]: pair for pair in talks.conversation(fork.conversation).turns()}
    assert kept[fork.turn_id]["parent_turn_id"] == first.turn_id
    assert len(kept) == 4


def test_repeats_and_force_have_conversations_of_their_own(bench: Bench) -> None:
    bench.run(ids=(turn(LINE, 2),))
    assert bench.run(ids=(turn(LINE, 2),)).asked == 0
    bench.run(ids=(turn(LINE, 2),), repeats=2)
    bench.run(RunOptions(force=True), ids=(turn(LINE, 2),))
    rows = RunStore(bench.out).read_attempts()
    assert [(row.question_id[-1], row.repeat, row.attempt) for row in rows] == [
        (number, repeat, attempt) for repeat, attempt in ((0, 0), (1, 0), (0, 1)) for number in "12"
    ]
    assert len({facts(row).conversation for row in rows}) == 3
    assert len({row.thread_id for row in rows}) == 6
    assert bench.run().asked == TURNS - 2
    newest = [row for row in RunStore(bench.out).read_rows() if row.repeat == 0]
    names = {facts(row).conversation for row in newest if facts(row).dialogue_id == LINE}
    assert names == {facts(rows[-1]).conversation}, "later turns go on from the newest attempt"


class Stopped(UserError):
    """What ends a run in its middle."""


def test_run_stopped_within_a_dialogue_asks_nothing_twice(bench: Bench) -> None:
    def stop(progress: Progress) -> None:
        if progress.done == 3:
            raise Stopped("stop")

    with pytest.raises(Stopped):
        bench.run(on_progress=stop, cache="off")
    file = bench.out / "rows.jsonl"
    file.write_bytes(file.read_bytes()[:-20])  # the third was answered, and killed while its row was written
    before = bench.rows()
    assert list(before) == [("naive", turn(LINE, 1)), ("naive", turn(LINE, 2))]
    summary = bench.run(cache="off")
    assert (summary.asked, summary.kept) == (TURNS - 2, 2)
    rows = bench.rows()
    assert len({facts(row).conversation for row in rows.values() if facts(row).dialogue_id == LINE}) == 1
    assert [rows["naive", turn(LINE, number)].prediction for number in (3, 4)] == ["the drum", "grey"]
    assert sum(row.paid_llm_calls for row in rows.values()) == bench.requests()


def test_limit_stops_within_a_turn_and_the_dialogue_goes_on(bench: Bench) -> None:
    stopped = bench.run(max_calls=2)
    assert (stopped.asked, stopped.stopped_by) == (1, "max_calls=2"), "the second turn asked for a third call"
    assert bench.requests() == 2
    assert bench.run().asked == TURNS - 1
    assert len(RunStore(bench.out).read_attempts()) == TURNS


def test_turns_after_a_failed_one_fail_unasked(bench: Bench) -> None:
    def break_the_model(progress: Progress) -> None:
        if progress.done == 1:
            bench.server.configure(faults={"500": 1.0})

    ids = tuple(turn(LINE, number) for number in (1, 2, 3))
    assert bench.run(on_progress=break_the_model, ids=ids).failed == 2
    _, second, third = bench.rows().values()
    assert "500" in second.error
    assert third.error.startswith(f"It was not asked, because its previous turn {second.question_id}")
    assert (third.paid_llm_calls, facts(third).own.calls) == (0, 0)

    bench.server.configure(faults={})
    bench.server.reset()
    assert bench.run(ids=ids).asked == 0
    again = bench.run(RunOptions(retry="failed"), ids=ids)
    assert (again.asked, again.failed) == (3, 0)
    rows = list(bench.rows().values())
    assert {(row.status, row.attempt) for row in rows} == {("answered", 1)}
    assert (rows[0].paid_llm_calls, bench.requests()) == (0, sum(row.paid_llm_calls for row in rows)), (
        "the first was kept"
    )
    assert bench.run(RunOptions(retry="failed"), ids=ids).asked == 0


def test_given_history_takes_the_place_of_the_system_s_own(bench: Bench) -> None:
    assert bench.run(history="given", ids=(turn(LINE, 3), turn(LINE, 4))).asked == 2, "their paths are not asked"
    third, fourth = (facts(bench.rows()["naive", turn(LINE, number)]) for number in (3, 4))
    assert third.conversation != fourth.conversation
    assert (third.path_length, fourth.path_length) == (3, 4)
    assert third.standalone_query == "Which vessel is it that Norm A names?"
    assert third.reused == ()
    assert (third.needed_turns, fourth.needed_turns) == (DRUM.turns[2].relevant_turns, DRUM.turns[3].relevant_turns)


def test_dialogues_without_a_corpus_are_asked_of_the_model_alone(bench: Bench, tmp_path: Path) -> None:
    history = [{"role": "user", "text": FIRST}]
    file = write_list(
        tmp_path,
        {"id": "1_1", "topic_id": "1", "turn": 1, "question": FIRST, "rewrite": FIRST},
        {"id": "1_2", "topic_id": "1", "turn": 2, "history": history, "question": THICKNESS, "rewrite": "Is it thick?"},
    )
    with pytest.raises(SettingsError, match="no corpus to retrieve from"):
        bench.run(out=tmp_path / "other", dataset=f"cast:{file}")
    assert bench.run(dataset=f"cast:{file}", systems=("llm",), history="given").failed == 0
    first, second = bench.rows().values()
    assert facts(second).standalone_query == STANDALONE_THICKNESS
    assert facts(second).retrieved == {}
    assert (first.tree is not None, second.tree is not None) == (True, True)


def test_turns_that_are_not_asked_are_history(bench: Bench, tmp_path: Path) -> None:
    first, second, third = DRUM.turns[:3]
    said = [{"role": "user", "text": turn.question} for turn in (first, second)]
    file = write_list(
        tmp_path,
        {"id": "1_2", "topic_id": "1", "turn": 2, "history": said[:1], "question": second.question, "rewrite": "x"},
        {"id": "1_3", "topic_id": "1", "turn": 3, "history": said, "question": third.question, "rewrite": "x"},
    )
    assert bench.run(dataset=f"cast:{file}", systems=("llm",)).failed == 0
    rows = bench.rows()
    assert [facts(rows["llm", name]).path_length for name in ("1_2", "1_3")] == [2, 3]
    assert facts(rows["llm", "1_3"]).standalone_query == third.standalone


def test_pilot_asks_paths_and_the_run_goes_on_from_them(bench: Bench) -> None:
    estimate = estimate_run(bench.experiment, bench.out, pilot=2, settings=bench.settings)
    asked = bench.rows()
    assert all(_parent(name) in asked for _, name in asked if _parent(name))
    assert (estimate.pilot_asked, estimate.total.left) == (len(asked), TURNS - len(asked))
    assert bench.run().asked == TURNS - len(asked)


def test_history_options_and_limits_belong_to_what_a_run_shares(bench: Bench) -> None:
    bench.run(ids=(turn(LINE, 1),))
    identity = (RunStore(bench.out).read_manifest() or {})["identity"]
    assert isinstance(identity, dict)
    assert (identity["history"], identity["max_recent_turns"]) == ("own", bench.settings.max_recent_turns)
    for change, named in (
        ({"history": "given"}, "history: 'own' there, 'given' now"),
        ({"conversation": {"summary_memory": True}}, "conversation: "),
    ):
        with pytest.raises(SettingsError, match=named):
            bench.run(**change)
    fewer = bench.settings.model_copy(update={"max_recent_turns": 2})
    with pytest.raises(SettingsError, match="max_recent_turns: 10 there, 2 now"):
        bench.run(settings=fewer)


def test_conversation_switches_lead_the_conversation(bench: Bench) -> None:
    bench.run(ids=(turn(LINE, 5),), conversation={"answer_without_evidence": True})
    last = bench.rows()["naive", turn(LINE, 5)]
    assert facts(last).answered_from == "knowledge"
    assert facts(bench.rows()["naive", turn(LINE, 4)]).answered_from == "search"


def run_id(bench: Bench) -> str:
    return str((RunStore(bench.out).read_manifest() or {})["run_id"])


def _parent(name: str) -> tuple[str, str] | None:
    dialogue, _, number = name.rpartition("-turn-")
    before = {1: 0, 4: 1 if dialogue == FORK else 3}.get(int(number), int(number) - 1)
    return ("naive", turn(dialogue, before)) if before else None
