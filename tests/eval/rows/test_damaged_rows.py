"""Rows, trees, labels, scores and recordings with numbers that no record can hold are refused by name, everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from judgetree.evaluation.reports.compare import compare_runs
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.rows.store import RowChunk, RunRow, RunStore
from judgetree.evaluation.rows.turn_facts import TurnFacts
from judgetree.evaluation.run_diff import diff_runs
from judgetree.evaluation.training.export import export
from judgetree.modules.calls.prices import ModelUsage
from judgetree.modules.errors import LoadingError
from judgetree.modules.storage.formats import FORMAT_KEY, format_of
from tests.eval.run_rows import run_row, tree_figures, write_run

HUGE = "1" + "0" * 30
WRONG = [HUGE, "-1", "1e400", "NaN", "Infinity", "true", '"7"', "1.5", "[]", "-" + HUGE]
ROW = run_row(
    tree=tree_figures(),
    chunks=(RowChunk(key="k", chunk_id="c", depth=0, rank=0, verdict="2", confidence=0.5, p_needed=0.5),),
    paid=(ModelUsage(model="m", kind="chat"),),
    conversation=TurnFacts(dialogue_id="d", number=1, conversation="c", path_length=1),
    damage={"failed_verdicts": 1},
)


def _numbers(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """The places of all numbers, and whether each is a whole one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _numbers(inner, (*path, place))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, isinstance(value, int)


def _line() -> dict[str, object]:
    found: dict[str, object] = json.loads(TypeAdapter(RunRow).dump_json(ROW))
    return {FORMAT_KEY: format_of("rows"), **found}


def _with(path: tuple[str | int, ...], number: str) -> str:
    line = _line()
    at: object = line
    for key in path[:-1]:
        at = at[key]  # type: ignore[index]
    at[path[-1]] = "MARK"  # type: ignore[index]
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False).replace('"MARK"', number)


PLACES = list(_numbers(_line()))


def test_many_numbers_are_looked_at() -> None:
    assert len(PLACES) > 40


@pytest.mark.parametrize(("path", "is_whole"), PLACES, ids=[".".join(map(str, path)) for path, _ in PLACES])
def test_a_number_that_no_row_can_hold_is_refused(path: tuple[str | int, ...], is_whole: bool, tmp_path: Path) -> None:
    for number in WRONG:
        if not is_whole and number in ("-1", "1.5"):
            continue
        (tmp_path / "rows.jsonl").write_text(_with(path, number) + "\n", encoding="utf-8")
        with pytest.raises(LoadingError, match=r"rows\.jsonl, line 1 is damaged: .*Take that line out"):
            RunStore(tmp_path).read_rows()
    (tmp_path / "rows.jsonl").write_text(_with(path, "3") + "\n", encoding="utf-8")
    assert len(RunStore(tmp_path).read_rows()) == 1


@pytest.mark.parametrize(
    "read",
    [
        load_report,
        lambda run: compare_runs(run, run),
        lambda run: diff_runs(run, run),
        lambda run: export(run, "judge"),
    ],
    ids=["report", "compare", "diff", "export"],
)
def test_every_reader_of_rows_refuses_them(read: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("question,answer\nWho?,right\n", encoding="utf-8")
    run = write_run(tmp_path / "run", {"judge": 1}, dataset=f"questions:{tmp_path / 'q.csv'}", systems=["judge"])
    file = run / "rows.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace('"seconds":1.0', f'"seconds":{HUGE}'), encoding="utf-8")
    with pytest.raises(LoadingError, match=r"rows\.jsonl, line 1 is damaged"):
        read(run)
