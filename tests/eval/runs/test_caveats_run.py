"""Replies that are worse than they look, from the endpoint to row, report and page: once, whatever is repeated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.evaluation.metrics.damage import DAMAGE_KINDS
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.rows.store import RunRow, RunStore
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.modules.caveats.kinds import CAVEAT_KINDS, CAVEATS, CaveatKind
from judgetree.modules.settings import load_settings
from tests.app.conftest import CHAIN
from tests.eval.dataset_files import standards_row, write_standards
from tests.eval.run_bench import RunBench

QUOTES = {
    "a.md": "Norm A names the drum.",
    "b.md": "The drum's wall is 40 mm thick.",
    "c.md": " ".join(f"Ladders are painted grey, as rule {number} says." for number in range(300)),
}
LADDERS = "Which colour are ladders painted?"
ROWS = [
    {**asdict(CHAIN), "id": "chain"},
    standards_row("colour", LADDERS, "grey", "c.md", "Ladders are painted grey, as rule 0 says."),
]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RunBench]:
    file = write_standards(tmp_path / "data", QUOTES, *ROWS)
    with ScriptedServer(load_standards_qa(file)) as server:
        yield RunBench(
            server=server,
            settings=load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0),
            experiment=Experiment(
                dataset=f"standards:{file}", systems=("naive", "judge"), topk=1, search_type="sparse", concurrency=1
            ),
            out=tmp_path / "run",
        )


def answering(server: ScriptedServer, **changes: object) -> None:
    """Change the replies to readers of the question about ladders, and no others."""

    def reply(request: ReceivedRequest) -> ChatReply | None:
        is_meant = request.prompt.kind == "read" and request.prompt.query == LADDERS
        return ChatReply(**{"text": "grey", **changes}) if is_meant else None  # type: ignore[arg-type]

    server.responses = reply


def rows(bench: RunBench) -> dict[tuple[str, str], RunRow]:
    return {(row.system, row.question_id): row for row in RunStore(bench.out).read_rows()}


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"finish_reason": "content_filter"}, "filtered", "1 filtered reply"),
        ({"text": "", "refusal": "I can't help with that."}, "declined", "1 declined reply"),
        ({"text": "", "reasoning": "grey"}, "only_thinking", "1 thinking-only reply"),
        ({"context_tokens": 512}, "prompt_cut", "1 cut prompt"),
        ({"finish_reason": "length"}, "reply_cut", "1 cut-off reply"),
    ],
)
@pytest.mark.slow
def test_caveats_stand_in_row_tree_report_and_page(
    bench: RunBench, changes: dict[str, object], kind: CaveatKind, words: str
) -> None:
    answering(bench.server, **changes)
    bench.run(systems=("naive",), topk=8)
    by_question = rows(bench)
    is_damage = kind == "reply_cut"
    column, besides = ("cut_off_replies", {}) if is_damage else (f"caveat_{kind}", {kind: 1})
    assert {name: dict(row.caveats) for (_, name), row in by_question.items()} == {"chain": {}, "colour": besides}
    assert by_question["naive", "colour"].completeness == ("degraded" if is_damage else "complete")
    report = load_report(bench.out)
    frame = report.questions.set_index("question_id")
    assert list(frame["caveats"].loc[["chain", "colour"]]) == ["", "" if is_damage else words]
    assert list(frame["damage"].loc[["chain", "colour"]]) == ["", words if is_damage else ""]
    counts = frame[[*DAMAGE_KINDS, *(f"caveat_{each}" for each in CAVEAT_KINDS)]]
    assert counts.to_numpy().sum() == frame.loc["colour", column] == 1
    text = report.to_markdown()
    assert ("1 answer of 2 with replies that are worse than they look." in text) is not is_damage
    assert ("naive 1 of 2 (50%)" in text) is not is_damage
    assert CAVEATS[kind].remedy in text
    assert text.count(words.removeprefix("1 ")) == 1
    assert report.to_document()["caveats"] == {"naive": besides}


def test_caveats_are_the_same_out_of_the_cache_and_after_a_resume(bench: RunBench) -> None:
    answering(bench.server, text="", refusal="I can't help with that.")
    bench.run(limit=1)
    bench.run()
    first = {place: dict(row.caveats) for place, row in rows(bench).items()}
    assert {name: counts for (_, name), counts in first.items()} == {"chain": {}, "colour": {"declined": 1}}
    asked = bench.requests()
    again = replace(bench, out=bench.out.with_name("again"))
    again.run()
    assert bench.requests() == asked, "all came out of the cache"
    assert {place: dict(row.caveats) for place, row in rows(again).items()} == first


def test_rows_of_older_versions_have_none(bench: RunBench) -> None:
    bench.run(systems=("naive",))
    file = RunStore(bench.out).rows_file
    old = [json.loads(line) for line in file.read_text().splitlines()]
    for row in old:
        assert row.pop("caveats") == {}
    file.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in old))
    report = load_report(bench.out)
    assert set(report.questions["caveats"]) == {""}
    assert "worse than they look" not in report.to_markdown()
