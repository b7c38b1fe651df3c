"""Batch runs over the scripted model: rows, going on after a stop, repeats, replay, limits."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.endpoints import Outgoing, Responses
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.evaluation.reports.frames import question_frame
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.rows.code_version import code_versions_in
from judgetree.evaluation.rows.json_lines import append_line
from judgetree.evaluation.rows.store import RunRow, RunStore
from judgetree.evaluation.runs.batch_run import RunOptions
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.runner import Progress
from judgetree.modules.calls.prices import Price, Prices
from judgetree.modules.errors import (
    CacheMiss,
    CollectionError,
    ModelSetupError,
    SearchArgumentError,
    SettingsError,
    WritingError,
)
from judgetree.modules.index.factory import open_index
from judgetree.modules.settings import load_settings
from tests.app.conftest import CHAIN
from tests.eval.dataset_files import standards_row, write_lines, write_standards
from tests.eval.run_bench import RunBench
from tests.file_limits import largest_file

QUOTES = {
    "a.md": "Norm A names the drum.",
    "b.md": "The drum's wall is 40 mm thick.",
    "c.md": "Ladders are painted grey.",
}
LADDERS = "Which colour are ladders painted?"
ROWS = [
    {**asdict(CHAIN), "id": "chain"},
    standards_row("colour", LADDERS, "grey", "c.md", QUOTES["c.md"]),
    {"id": "none", "lang": "en", "question": "Who welded the drum?", "answer": "", "type": "unanswerable"},
]


class Bench(RunBench):
    """A data set of three questions, a model that knows it, and a home of its own."""

    def rows(self) -> dict[tuple[str, str, int], RunRow]:
        return {row.place: row for row in RunStore(self.out).read_rows()}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    file = write_standards(tmp_path / "data", QUOTES, *ROWS)
    with ScriptedServer(load_standards_qa(file)) as server:
        yield Bench(
            server=server,
            settings=load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0),
            experiment=Experiment(
                dataset=f"standards:{file}", systems=("naive", "judge"), topk=1, search_type="sparse", concurrency=2
            ),
            out=tmp_path / "run",
        )


def calls(row: RunRow) -> int:
    """Paid or out of the cache."""
    assert row.tree is not None
    return row.tree.llm_calls + row.tree.cached_llm_calls


def test_each_system_answers_each_question_in_a_row(bench: Bench) -> None:
    summary = bench.run()
    rows = bench.rows()
    assert (summary.asked, summary.kept, summary.failed) == (6, 0, 0)
    assert set(rows) == {(system, row["id"], 0) for system in ("naive", "judge") for row in ROWS}
    chain = rows["judge", "chain", 0]
    assert (chain.prediction, chain.status) == ("40 mm", "answered")
    assert chain.tree is not None
    assert (chain.tree.sub_runs, chain.tree.depth) == (1, 1)
    assert [(chunk.key, chunk.depth, chunk.verdict) for chunk in chain.chunks] == [("a.md", 0, "1"), ("b.md", 1, "2")]
    assert rows["naive", "chain", 0].status == "refused", "one chunk does not hold both facts"
    assert rows["naive", "colour", 0].prediction == "grey"
    assert rows["judge", "none", 0].status == "refused"
    context = {place[:2]: row.context.answer_in_context for place, row in rows.items() if row.context}
    assert context == {
        **{("naive", "chain"): 0.0, ("naive", "colour"): 1.0, ("naive", "none"): None},
        **{("judge", "chain"): 1.0, ("judge", "colour"): 1.0, ("judge", "none"): None},
    }, "answers to sub-questions are part of it"
    frame = question_frame(rows.values(), load_dataset(bench.experiment.dataset).questions).set_index(
        ["system", "question_id"]
    )
    assert frame["evidence"].dropna().to_dict() == {
        **{("naive", "chain"): 0.0, ("naive", "colour"): 1.0},
        **{("judge", "chain"): 1.0, ("judge", "colour"): 1.0},
    }, "as readers saw it, sub-questions included"
    assert all(calls(row) > 0 for row in rows.values())
    paid = sum(row.tree.llm_calls for row in rows.values() if row.tree)
    assert paid == bench.requests(), "systems that ask the same share the answer"


def test_a_report_shows_what_readers_saw_if_the_experiment_asks_for_it(bench: Bench) -> None:
    bench.run(limit=1, metrics=("em", "answer_in_context", "redundancy"))
    report = load_report(bench.out)
    text = report.to_markdown()
    assert "<th>answer in the context</th>" in report._repr_html_(), "as it shows itself in a notebook"
    assert "| system | n | failed | degraded | refused | EM | answer in the context | redundancy |" in text
    assert "| naive | 1 | 0 | 0 | 1 | 0.0" in text


def test_further_rounds_of_a_system_lie_below_the_question(bench: Bench) -> None:
    bench.run(systems=("ircot",), limit=1)
    (row,) = bench.rows().values()
    assert row.prediction == "40 mm"
    assert row.tree is not None
    assert (row.tree.depth, row.tree.sub_runs) == (1, 0)
    assert [(chunk.key, chunk.depth) for chunk in row.chunks] == [("a.md", 0), ("b.md", 1)]


def test_other_thresholds_of_the_judge_are_another_run(bench: Bench) -> None:
    bench = bench.changed(systems=("judge",), judge="logprob")
    bench.run()
    stricter = bench.settings.model_copy(update={"judge_needed_threshold": 0.9})
    with pytest.raises(SettingsError, match=r"threshold_needed: '0.5' there, '0.9' now"):
        bench.run(RunOptions(force=True), settings=stricter)


def test_same_command_goes_on_and_asks_nothing_twice(bench: Bench) -> None:
    first = bench.run(limit=1)
    calls = bench.requests()
    second = bench.run(limit=1)
    assert (first.asked, second.asked, second.kept) == (2, 0, 2)
    assert bench.requests() == calls
    assert bench.run().asked == 4


def test_second_command_in_the_directory_is_refused_and_the_first_goes_on(bench: Bench) -> None:
    refused: list[str] = []

    def run_beside(progress: Progress) -> None:
        if not refused:
            with pytest.raises(SettingsError) as refusal, RunStore(bench.out).held():
                pass
            refused.append(str(refusal.value))

    assert bench.run(on_progress=run_beside).asked == 6
    assert re.search(rf"{bench.out} is being worked in by process {os.getpid()} on .*--workers N", refused[0])
    assert len(RunStore(bench.out).read_attempts()) == 6
    assert bench.run().kept == 6


def test_row_that_was_cut_off_by_a_kill_is_asked_again(bench: Bench) -> None:
    bench.run()
    before = bench.rows()
    file = bench.out / "rows.jsonl"
    content = file.read_bytes()
    file.write_bytes(content[:-20])
    torn = set(before) - set(bench.rows())
    assert len(torn) == 1
    assert bench.run().asked == 1
    after = bench.rows()
    assert set(after) == set(before)
    assert all(after[place].prediction == row.prediction for place, row in before.items())
    assert all(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


def test_replayed_run_pays_nothing_and_says_the_same(bench: Bench) -> None:
    bench.run()
    requests = bench.requests()
    paid = bench.rows()
    again = bench.out.with_name("again")
    bench.run(out=again, cache="replay")
    assert bench.requests() == requests
    replayed = {row.place: row for row in RunStore(again).read_rows()}
    for place, row in paid.items():
        kept = replayed[place]
        assert (kept.prediction, kept.status, kept.chunks) == (row.prediction, row.status, row.chunks)
        assert kept.tree is not None
        assert (kept.tree.llm_calls, calls(kept)) == (0, calls(row))


def test_replay_of_what_was_never_paid_for_stops_and_says_so(bench: Bench) -> None:
    with pytest.raises(CacheMiss, match="--cache write"):
        bench.run(cache="replay")
    assert bench.rows() == {}


def test_repeats_are_asked_anew(bench: Bench) -> None:
    bench.run(systems=("naive",), repeats=2, limit=2)
    rows = bench.rows()
    assert set(rows) == {("naive", question, repeat) for question in ("chain", "colour") for repeat in (0, 1)}
    assert [row.tree.llm_calls for row in rows.values() if row.tree] == [1] * 4
    assert len({row.thread_id for row in rows.values()}) == 4


@pytest.mark.parametrize(
    ("name", "usual", "own", "other"), [("temperature", 0.0, 0.7, 0.2), ("thinking", None, False, True)]
)
def test_temperature_and_thinking_are_the_reader_s_and_others_are_another_run(
    bench: Bench, name: str, usual: object, own: object, other: object
) -> None:
    sent: set[tuple[str, object]] = set()

    def respond(request: ReceivedRequest) -> None:
        sent.add((request.prompt.kind, getattr(request, name)))

    bench.server.responses = respond
    bench.run(out=bench.out.with_name("as usual"))
    assert {value for _, value in sent} == {usual}
    sent.clear()
    bench.run(**{name: own})
    assert sent == {("read", own)}, "answers are drawn anew; verdicts are those of the cache"
    with pytest.raises(SettingsError, match=f"{name}: {own} there, {other} now"):
        bench.run(settings=bench.settings.model_copy(update={name: other}))


def test_failed_questions_are_rows_and_can_be_asked_again(bench: Bench) -> None:
    bench.server.configure(faults={"500": 1.0})
    failed = bench.run(systems=("naive",))
    assert failed.failed == 3
    assert all(row.status == "failed" and "500" in row.error for row in bench.rows().values())
    bench.server.configure(faults={})
    assert bench.run(systems=("naive",)).asked == 0
    assert bench.run(RunOptions(retry="failed"), systems=("naive",)).asked == 3
    rows = bench.rows()
    assert {(row.status, row.attempt) for row in rows.values()} == {("answered", 1), ("refused", 1)}


def test_answers_that_an_outage_damaged_are_degraded_and_asked_again(bench: Bench) -> None:
    bench = bench.changed(systems=("judge",), topk=3)
    other_home = bench.settings.model_copy(update={"home": bench.settings.home.with_name("clean")})
    bench.run(out=bench.out.with_name("clean"), settings=other_home)
    clean = {row.place: row for row in RunStore(bench.out.with_name("clean")).read_rows()}
    bench.server.reset()
    bench.server.responses = failing("judge", about="The drum's wall")
    broken = bench.run()
    assert (broken.asked, broken.failed, broken.degraded) == (3, 0, 2), "a search for ladders finds no drum"
    rows = {place[1]: row for place, row in bench.rows().items()}
    assert {name: row.completeness for name, row in rows.items()} == {
        **{"chain": "degraded", "none": "degraded", "colour": "complete"}
    }
    assert all(row.damage.keys() == {"failed_verdicts"} for name, row in rows.items() if name != "colour")
    bench.server.responses = None
    kept = bench.run(RunOptions(retry="failed"))
    assert (kept.asked, kept.kept, kept.kept_incomplete) == (0, 3, 2)
    again = bench.run(RunOptions(retry="incomplete"))
    assert (again.asked, again.degraded, again.kept_incomplete) == (2, 0, 0)
    assert {place: (row.prediction, row.completeness) for place, row in bench.rows().items()} == {
        place: (row.prediction, "complete") for place, row in clean.items()
    }


def refusing(status: int, *queries: str) -> Responses:
    """An endpoint that refuses chat requests about these questions, or all."""

    def respond(request: ReceivedRequest) -> ChatReply | None:
        refused = not queries or request.prompt.query in queries
        return ChatReply(status=status, text="no way") if refused else None

    return respond


def test_question_that_the_endpoint_refuses_fails_alone(bench: Bench) -> None:
    bench.server.responses = refusing(400, str(ROWS[0]["question"]))
    summary = bench.run()
    assert (summary.asked, summary.failed) == (6, 2)
    assert "HTTP 400" in summary.failure
    failed = {place for place, row in bench.rows().items() if row.status == "failed"}
    assert failed == {("naive", "chain", 0), ("judge", "chain", 0)}
    assert bench.run().asked == 0, "it would be refused again"


@pytest.mark.parametrize("fail_after", [2, 0.5])
def test_dead_endpoint_stops_the_run_and_questions_are_asked_again(bench: Bench, fail_after: float) -> None:
    bench = bench.changed(concurrency=1, repeats=2, fail_after=fail_after)
    bench.server.responses = refusing(401)
    with pytest.raises(
        ModelSetupError, match=r"Stopped: (\d+) of \1 questions could not be asked.*HTTP 401.*same command"
    ):
        bench.run()
    rows = bench.rows()
    assert len(rows) == (2 if fail_after == 2 else 10)
    assert all(row.setup_failed and row.completeness == "failed" and "HTTP 401" in row.error for row in rows.values())
    bench.server.responses = None
    summary = bench.run()
    assert (summary.asked, summary.kept, summary.failed) == (12, 0, 0)


def failing(*kinds: str, status: int = 500, about: str = "") -> Responses:
    """An endpoint at which requests of these kinds, whose messages hold a text, fail."""

    def respond(request: ReceivedRequest) -> ChatReply | None:
        is_one = request.prompt.kind in kinds and any(about in text for _, text in request.messages)
        return ChatReply(status=status, text="no way") if is_one else None

    return respond


@pytest.mark.parametrize("status", [400, 500])
def test_a_question_of_which_every_judge_call_failed_has_failed(bench: Bench, status: int) -> None:
    bench.server.responses = failing("judge", status=status)
    summary = bench.run()
    assert (summary.asked, summary.failed, summary.degraded) == (6, 3, 0)
    assert re.search(rf"The judge failed on every chunk \(1\).*{status}", summary.failure)
    rows = bench.rows()
    assert {place for place, row in rows.items() if row.completeness == "failed"} == {
        ("judge", row["id"], 0) for row in ROWS
    }
    assert rows["judge", "colour", 0].prediction == "grey", "what came is kept"
    assert "| judge | 3 | 3 | 0 |" in load_report(bench.out).to_markdown()
    bench.server.responses = None
    assert bench.run(RunOptions(retry="failed")).failed == 0
    assert {row.completeness for row in bench.rows().values()} == {"complete"}


def test_a_judge_whose_replies_are_of_no_use_has_worked(bench: Bench) -> None:
    bench.server.responses = lambda request: ChatReply(text="Hm.") if request.prompt.kind == "judge" else None
    summary = bench.run()
    assert (summary.failed, summary.degraded, summary.unusable) == (0, 0, 3)
    assert bench.run(RunOptions(retry="incomplete")).asked == 0, "its failures are its own"


@pytest.mark.parametrize("kinds", [("judge",), ("read",)])
def test_questions_that_fail_in_a_row_stop_the_run_whatever_failed_them(bench: Bench, kinds: tuple[str, ...]) -> None:
    bench = bench.changed(systems=("judge",), concurrency=1, fail_after=2)
    bench.server.responses = failing(*kinds)
    with pytest.raises(ModelSetupError, match=r"Stopped: 2 of 2 questions failed.*500.*`--retry failed`"):
        bench.run()
    assert len(bench.rows()) == 2
    bench.server.responses = None
    summary = bench.run(RunOptions(retry="failed"))
    assert (summary.asked, summary.failed) == (3, 0)


@pytest.mark.slow
def test_a_question_of_which_every_rerank_failed_has_failed(bench: Bench) -> None:
    ranker = {"model": f"{bench.server.base_url}/rerank#r"}
    bench = bench.changed(systems=("naive",), ranker_type="model", ranker_params=ranker)
    assert bench.run(out=bench.out.with_name("served")).failed == 0
    bench.server._endpoints._posts["/v1/rerank"] = lambda raw: Outgoing(status=500, body=b"{}")
    summary = bench.run(settings=bench.settings.model_copy(update={"retries": 0}))
    assert (summary.asked, summary.failed, summary.degraded) == (3, 3, 0)
    assert "The rerank model failed at every search (1)" in summary.failure


def test_run_of_few_questions_that_could_not_be_asked_says_so_too(bench: Bench) -> None:
    bench.server.responses = refusing(403)
    with pytest.raises(ModelSetupError, match="Stopped: 6 of 6 questions could not be asked"):
        bench.run()


def test_calls_before_the_endpoint_became_unusable_stay_paid(bench: Bench) -> None:
    bench = bench.changed(systems=("judge",), cache="off", concurrency=1)
    bench.server.responses = refusing(401, "How thick is the wall of the drum?")
    bench.run()
    chain = bench.rows()["judge", "chain", 0]
    assert (chain.setup_failed, chain.paid_llm_calls) == (True, 1), "the verdict that the sub-question comes from"
    assert chain.tokens > 0
    assert [usage.calls for usage in chain.paid or ()] == [1]
    paid = sum(row.paid_llm_calls for row in bench.rows().values())
    assert paid == bench.requests() - 1, "all but the one that was refused"
    again = bench.run(max_calls=paid)
    assert (again.asked, again.stopped_by) == (0, f"max_calls={paid}"), "a later command counts them too"


def test_endpoint_that_refuses_for_a_while_does_not_stop_the_run(bench: Bench) -> None:
    bench.server.responses = refusing(401, str(ROWS[0]["question"]))
    summary = bench.run(fail_after=3, concurrency=1)
    assert (summary.asked, summary.failed) == (6, 2)
    bench.server.responses = None
    assert bench.run().asked == 2


def test_full_disk_ends_the_run_and_takes_no_row_that_was_told(bench: Bench) -> None:
    bench = bench.changed(concurrency=1)
    told: list[RunRow] = []

    def tell(progress: Progress) -> None:
        told.extend([progress.row] if progress.row else [])

    bench.run(limit=1)
    kept, trees = bench.rows(), bench.out / "trees.jsonl"
    size = 4_000_000
    append_line(trees, b'{"thread_id":"x","tree":' + b" " * (size - 4_000 - trees.stat().st_size) + b"{}}")
    with largest_file(size), pytest.raises(WritingError, match=r"trees\.jsonl could not be written: File too large"):
        bench.run(on_progress=tell)
    assert bench.rows() == kept | {row.place: row for row in told}
    assert trees.read_bytes().endswith(b"\n")
    finished = bench.run()
    assert (finished.asked, finished.failed, finished.degraded) == (4 - len(told), 0, 0)
    assert len(RunStore(bench.out).read_attempts()) == 6


def test_disk_that_takes_no_checkpoint_ends_the_run_too(bench: Bench) -> None:
    bench.run(limit=1)
    checkpoints = bench.out / "checkpoints.sqlite"
    whole = checkpoints.read_bytes()
    checkpoints.write_bytes(whole[:18] + b"\3" + whole[19:])  # a version that SQLite reads and does not write
    with pytest.raises(WritingError, match="The state of a question could not be written"):
        bench.run()
    checkpoints.write_bytes(whole)
    assert bench.run().asked == 4


def test_full_disk_under_the_checkpoints_ends_the_run_too(bench: Bench) -> None:
    bench.run(limit=1)
    checkpoints = bench.out / "checkpoints.sqlite"
    with (
        largest_file(checkpoints.stat().st_size),
        pytest.raises(WritingError, match=r"The state of a question|The call journal"),
    ):
        bench.run()
    kept = bench.rows()
    assert 2 <= len(kept) < 6
    assert {row.completeness for row in kept.values()} == {"complete"}
    assert bench.run().asked == 6 - len(kept)


@pytest.mark.parametrize(
    ("kind", "garbled", "damage"),
    [("judge", "prose", {"unusable_verdicts": 1}), ("read", "truncated", {"cut_off_replies": 1})],
)
def test_damage_in_the_cache_is_not_read_again(bench: Bench, kind: str, garbled: str, damage: dict[str, int]) -> None:
    bench = bench.changed(systems=("judge",), judge="generated", ids=("colour",))
    bench.server.configure(faults={garbled: 1.0}, fault_kinds=[kind])
    bench.run()
    assert [row.damage for row in bench.rows().values()] == [damage]
    bench.server.configure(faults={})
    again = bench.run(RunOptions(force=True) if kind == "judge" else RunOptions(retry="incomplete"))
    assert (again.asked, again.degraded) == (1, 0)
    replay = bench.out.with_name("replay")
    bench.run(out=replay, cache="replay")
    assert [row.prediction for row in RunStore(replay).read_rows()] == ["grey"], "the cache keeps the new replies"


def test_run_of_other_code_resumes_only_if_accepted(bench: Bench) -> None:
    bench.run(limit=1)
    store = RunStore(bench.out)
    manifest = dict(store.read_manifest() or {})
    (known,) = code_versions_in(manifest)
    store.write_manifest({**manifest, "code": [{**known, "id": "old", "code_digest": "old"}]})
    for row in store.read_rows():
        store.append(replace(row, code="old"))
    assert bench.run(limit=1).asked == 0, "nothing is mixed"
    with pytest.raises(SettingsError, match="code_digest: old then"):
        bench.run()
    assert bench.run(RunOptions(accept_changes=True)).asked == 4
    assert {row.code for row in bench.rows().values()} == {"old", known["id"]}
    told = load_report(bench.out).to_markdown()
    assert f"2 versions of the code: 2 by old, 4 by {known['id']} (code_digest: old then" in told


def test_force_asks_everything_again_on_threads_of_its_own(bench: Bench) -> None:
    bench = bench.changed(systems=("naive",))
    bench.run()
    before = bench.rows()
    assert bench.run(RunOptions(force=True)).asked == 3
    after = bench.rows()
    assert {row.attempt for row in after.values()} == {1}
    assert not {row.thread_id for row in before.values()} & {row.thread_id for row in after.values()}


def test_a_start_that_only_takes_up_what_was_paid_counts_no_call(bench: Bench) -> None:
    """Questions whose rows were lost after their calls: the call journal and the checkpoints have all."""
    bench = bench.changed(systems=("judge",), cache="off")
    first = bench.run()
    assert first.calls == bench.requests() > 0
    store = RunStore(bench.out)
    store.rows_file.write_bytes(b"")
    again = bench.run()
    assert (again.asked, again.calls, bench.requests()) == (3, 0, first.calls)


def test_force_asks_the_models_again_too(bench: Bench) -> None:
    bench = bench.changed(systems=("naive", "iter_retgen"))
    bench.run()
    before = bench.requests()
    forced = bench.run(RunOptions(force=True))
    assert bench.requests() == 2 * before, "each call once, whichever system makes it first"
    made = sum(map(calls, bench.rows().values()))
    assert (forced.calls, forced.calls + forced.cached_calls) == (before, made)
    elsewhere = bench.out.with_name("elsewhere")
    replayed = bench.run(out=elsewhere, cache="replay")
    assert (replayed.cached_share, bench.requests()) == (1.0, 2 * before), "the new ones are kept"
    with pytest.raises(SettingsError, match="Leave out --force, or --cache replay"):
        bench.run(RunOptions(force=True), cache="replay")


def test_server_of_the_same_alias_at_another_address_answers_itself(bench: Bench) -> None:
    bench = bench.changed(systems=("llm",), limit=1)
    bench.run()
    with ScriptedServer(responses=lambda request: ChatReply(text="of the other model")) as other:
        spec, elsewhere = f"{other.base_url}#scripted", bench.out.with_name("elsewhere")
        settings = bench.settings.model_copy(update={"llm": spec})
        summary = bench.run(out=elsewhere, settings=settings)
        (row,) = RunStore(elsewhere).read_rows()
        assert (row.prediction, summary.cached_calls) == ("of the other model", 0)
        address = bench.server.base_url.removeprefix("http://")
        names = {other.base_url: "lab", address: "lab"}
        moved = bench.settings.model_copy(update={"endpoint_names": names, "llm": spec})
        for number, llm in enumerate((spec, bench.settings.llm)):
            out, at = bench.out.with_name(f"named-{number}"), moved.model_copy(update={"llm": llm})
            named = bench.run(out=out, settings=at)
            assert named.cached_calls == number, "one name, one endpoint"
            assert RunStore(out).read_rows()[0].prediction == "of the other model"


def test_systems_that_ask_the_same_cost_the_same_whichever_asked_first(bench: Bench) -> None:
    bench.server.configure(latency_s=0.05)
    prices = Prices({"chat": {"scripted": Price(prompt=1000.0, completion=1000.0)}})
    bench = bench.changed(systems=("naive", "iter_retgen"), limit=1, max_rec_depth=0, concurrency=1)
    bench.run()
    (first, second) = bench.rows().values()
    assert [row.tree.llm_calls for row in (first, second) if row.tree] == [1, 0], "the second came out of the cache"
    frame = question_frame([first, second], [EvalQuestion(id="chain", question="", answers=("40 mm",))], prices=prices)
    for name in ("llm_calls", "prompt_tokens", "completion_tokens", "cost_usd"):
        assert frame[name][0] == frame[name][1] > frame[f"paid_{name}"][1] == 0
        assert frame[f"paid_{name}"][0] == frame[name][0]
    assert frame["seconds"][1] >= 0.05 + frame["paid_seconds"][1]


def test_limit_on_paid_calls_stops_cleanly_and_the_run_goes_on(bench: Bench) -> None:
    stopped = bench.run(max_calls=1, concurrency=1)
    assert (stopped.asked, stopped.stopped_by) == (1, "max_calls=1")
    again = bench.run(max_calls=1)
    assert (again.asked, again.stopped_by) == (0, "max_calls=1"), "what was paid before counts"
    assert bench.run().asked == 5


def test_calls_stay_within_the_limit_and_open_questions_resume(bench: Bench) -> None:
    bench = bench.changed(systems=("judge",), topk=3, repeats=4, cache="off", concurrency=32)
    stopped = bench.run(max_calls=7)
    assert (bench.requests(), stopped.stopped_by) == (7, "max_calls=7")
    assert stopped.asked < 12
    assert stopped.failed == 0, "a question that is stopped is no answer"
    again = bench.run(max_calls=7)
    assert (again.asked, again.stopped_by) == (0, "max_calls=7"), "what open questions have paid counts"
    assert bench.requests() == 7
    whole = bench.run()
    assert [each.calls for each in (stopped, again, whole)] == [7, 0, bench.requests() - 7], "what each start paid for"
    rows = bench.rows()
    assert {row.prediction for row in rows.values()} == {"40 mm", "grey", rows["judge", "none", 0].prediction}
    assert sum(map(calls, rows.values())) == bench.requests(), "none is made twice, or not booked"


@pytest.mark.parametrize("concurrency", [1, 32])
def test_near_a_limit_started_questions_are_finished_before_others_start(bench: Bench, concurrency: int) -> None:
    bench = bench.changed(systems=("judge",), topk=3, repeats=4, cache="off", concurrency=concurrency)
    bench.run(out=bench.out.with_name("whole"))
    taken = [row.paid_llm_calls for row in RunStore(bench.out.with_name("whole")).read_rows()]
    limit = 2 * max(taken)
    before = bench.requests()
    stopped = bench.run(max_calls=limit)
    assert bench.requests() - before == stopped.calls == limit
    assert stopped.asked >= 2, f"of questions that take {taken} calls"


@pytest.mark.parametrize(("name", "limit"), [("max_tokens", 1000), ("max_cost", 1.0)])
@pytest.mark.parametrize("counts", [True, False], ids=["usage", "no usage"])
def test_tokens_and_money_stay_within_their_limits(bench: Bench, name: str, limit: float, counts: bool) -> None:
    bench.settings.home.mkdir(exist_ok=True)
    table = "[chat.scripted]\nprompt = 1000\ncompletion = 1000\n"
    (bench.settings.home / "prices.toml").write_text(table, encoding="utf-8")
    bench.server.responses = lambda request: ChatReply(text="forty-two", counts_tokens=counts)
    bench = bench.changed(systems=("llm",), repeats=12, concurrency=32, cache="off", **{name: limit})
    stopped = bench.run()
    assert stopped.stopped_by == f"{name}={limit:g}"
    assert 0 < stopped.asked == bench.requests() < 36
    assert 0 < stopped.cost.known_usd <= 1.0, "a thousand tokens, or a dollar, which is the same"
    assert stopped.cost.is_estimated != counts, "and the summary tells"
    assert counts or str(stopped.cost).startswith("about $")


@pytest.mark.parametrize(("change", "named"), [({"topk": 2}, "topk: 1 there, 2 now"), ({"judge": "logprob"}, "judge")])
def test_directory_of_another_run_is_refused(bench: Bench, change: dict[str, object], named: str) -> None:
    bench.run(limit=1)
    with pytest.raises(SettingsError, match=named):
        bench.run(**change)


def test_changed_data_are_another_run(bench: Bench) -> None:
    bench.run(limit=1)
    file = Path(bench.experiment.dataset.partition(":")[2])
    file.write_text(file.read_text(encoding="utf-8").replace("40 mm", "41 mm"), encoding="utf-8")
    with pytest.raises(SettingsError, match="digest"):
        bench.run()


def test_data_set_without_a_corpus_is_asked_of_no_system_that_retrieves(bench: Bench, tmp_path: Path) -> None:
    file = write_lines(tmp_path, {"id": "q", "question": "Who?", "golden_answers": ["Ada"]})
    with pytest.raises(SettingsError, match="no corpus to retrieve from"):
        bench.run(dataset=f"flashrag:{file}")
    assert bench.run(dataset=f"flashrag:{file}", systems=("llm",)).asked == 1


def test_strategy_is_read_by_and_belongs_to_what_a_run_directory_shares(bench: Bench) -> None:
    bench = bench.changed(systems=("naive",), topk=2, ids=("chain",))
    bench.run()
    identity = (RunStore(bench.out).read_manifest() or {})["identity"]
    assert isinstance(identity, dict)
    assert identity["strategy"] == "stuff"
    assert not identity.keys() & {"map_reduce_prompt", "refine_prompt", "map_rerank_prompt"}
    with pytest.raises(SettingsError, match="strategy: 'stuff' there, 'refine' now"):
        bench.run(strategy="refine")

    bench.server.reset()
    bench.run(out=bench.out.with_name("refined"), strategy="refine")
    assert not bench.server.requests["read"], "the passages are read one by one"
    rows = RunStore(bench.out.with_name("refined")).read_rows()
    assert [(row.prediction, calls(row)) for row in rows] == [("40 mm", 2)]


def test_manifest_tells_what_was_run_and_no_secret(bench: Bench) -> None:
    spec = bench.settings.llm.replace("://", "://ada:lovelace@")
    settings = bench.settings.model_copy(update={"llm": spec})
    bench.run(settings=settings, limit=1, systems=("naive",), llm=spec)
    manifest = RunStore(bench.out).read_manifest()
    assert manifest is not None
    assert {"run_id", "created", "experiment", "identity", "code"} <= manifest.keys()
    assert "lovelace" not in (bench.out / "manifest.json").read_text(encoding="utf-8")
    shutil.rmtree(bench.out)


def test_collection_that_is_there_can_stand_for_the_data_set_s_own(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "c.md").write_text(QUOTES["c.md"], encoding="utf-8")
    with open_index("other", bench.settings, data_path=folder) as index:
        index.get_index_done()
        digest = index.content_digest()
    bench = bench.changed(corpus="other", systems=("naive",))
    bench.run(ids=("colour",))
    facts = (RunStore(bench.out).read_manifest() or {})["index"]
    assert isinstance(facts, dict)
    assert (facts["collection"], facts["content_digest"]) == ("other", digest)
    assert [chunk.key for row in bench.rows().values() for chunk in row.chunks] == ["c.md"]
    (folder / "d.md").write_text("Drums are round.", encoding="utf-8")
    with open_index("other", bench.settings, data_path=folder) as index:
        index.get_index_done()
    with pytest.raises(SettingsError, match="content_digest"):
        bench.run()


def test_collection_that_is_not_there_is_named(bench: Bench) -> None:
    with pytest.raises(CollectionError, match="nowhere"):
        bench.run(corpus="nowhere")


@pytest.mark.parametrize(
    ("ranker_type", "params", "message"),
    [("weighted", {"weights": [0.5]}, "2 fields"), ("log_det", {"relevance": 2}, "relevance=2 is not allowed")],
)
def test_ranker_s_parameters_are_checked_before_anything_is_asked(
    bench: Bench, ranker_type: str, params: dict[str, object], message: str
) -> None:
    bench = bench.changed(search_type="hybrid", ranker_type=ranker_type, ranker_params=params)
    with pytest.raises(SearchArgumentError, match=message):
        bench.run()
    assert bench.rows() == {}


def test_larger_sample_keeps_what_is_there(bench: Bench) -> None:
    first = bench.run(systems=("llm",), sample=1, seed=5)
    second = bench.run(systems=("llm",), sample=2, seed=5)
    assert (first.asked, second.asked, second.kept) == (1, 1, 1)
