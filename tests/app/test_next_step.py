"""``judgetree`` alone: the home that it uses, and what to do next for what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.modules.trust.private import HOME_NAME
from tests.app.conftest import CHAIN, COLLECTION, Cli, new_thread

INDEX, ASK = "judgetree index FOLDER -c NAME", f'judgetree ask "…" -c {COLLECTION}'


def steps(out: str) -> list[str]:
    """The commands below "Next:", without their remarks."""
    return [line.partition("    #")[0].strip() for line in out.partition("Next:\n")[2].splitlines()]


def test_without_anything_it_says_where_it_looked_and_how_to_begin(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGETREE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    shown = cli().ok().out
    assert f"Home: none yet; looked for {HOME_NAME} in {tmp_path} and all folders above it" in shown
    assert steps(shown) == [INDEX, "judgetree --help"]
    assert list(tmp_path.iterdir()) == [], "looking makes nothing"
    assert f"looked for {HOME_NAME} in {tmp_path}" in cli("collections").ok().err
    assert f"looked for {HOME_NAME} in {tmp_path}" in cli("threads").ok().err
    (tmp_path / HOME_NAME).mkdir()
    assert f"Home: {tmp_path / HOME_NAME}, in this folder" in cli().ok().out
    (tmp_path / "below").mkdir()
    monkeypatch.chdir("below")
    assert f"Home: {tmp_path / HOME_NAME}, the nearest above this folder" in cli().ok().out


def test_a_collection_is_asked_then_its_tree_looked_at_then_a_run_reported(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = cli().ok().out
    assert f"Home: {home}, named by JUDGETREE_HOME\nCollections: {COLLECTION}\nNewest question: none\n" in shown
    assert steps(shown) == [ASK, "judgetree --help"]
    thread = new_thread()
    cli("ask", CHAIN.question, "-c", COLLECTION, "--system", "naive", "--thread-id", thread).ok()
    shown = cli().ok().out
    assert f"Newest question: {CHAIN.question}\n" in shown
    measured = f"judgetree eval run --questions FILE --corpus {COLLECTION} --out runs/first"
    assert steps(shown) == [ASK, f"judgetree tree {thread}", measured, "judgetree --help"]
    for run in ("runs/a b", "runs/done", "runs/empty"):
        Path(run).mkdir(parents=True)
        Path(run, "manifest.json").touch()
    Path("runs/a b/rows.jsonl").touch()
    Path("runs/done/rows.jsonl").touch()
    Path("runs/done/report.html").touch()
    assert steps(cli().ok().out)[:2] == ["judgetree eval report 'runs/a b'", ASK]
