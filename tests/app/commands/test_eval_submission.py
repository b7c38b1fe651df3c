"""``judgetree eval submission``: what it says and writes."""

from __future__ import annotations

from pathlib import Path

from tests.app.conftest import Cli
from tests.eval.browsecomp_files import write_browsecomp_plus
from tests.eval.run_rows import write_run


def test_it_says_what_it_wrote_and_how_answers_are_judged(cli: Cli, tmp_path: Path) -> None:
    spec = f"browsecomp_plus:{write_browsecomp_plus(tmp_path / 'set')}"
    run = write_run(tmp_path / "run", {"naive": 1, "judge": 2}, dataset=spec)
    older = tmp_path / "out" / "submission.json"
    older.parent.mkdir()
    older.write_text("{}", encoding="utf-8")
    done = cli("eval", "submission", str(run), "--out", str(tmp_path / "out"), "--system", "naive")
    assert not older.exists(), "its figures are not those of these answers"
    assert done.status == 0, done.err
    assert "4 answers" in done.err
    assert "--metric llm_correctness" in done.err
    assert len([*(tmp_path / "out" / "runs").iterdir()]) == 4


def test_of_several_systems_one_is_named(cli: Cli, tmp_path: Path) -> None:
    spec = f"browsecomp_plus:{write_browsecomp_plus(tmp_path / 'set')}"
    run = write_run(tmp_path / "run", {"naive": 1, "judge": 2}, dataset=spec)
    done = cli("eval", "submission", str(run), "--out", str(tmp_path / "out"))
    assert (done.status, "name one (--system)" in done.err) == (2, True)
