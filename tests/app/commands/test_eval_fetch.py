"""``judgetree eval fetch``: what a user is told, and gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree.app.commands.eval.fetch import LOOPBACK_HTTP
from tests.app.conftest import Cli
from tests.eval.dataset_files import hotpot_row, write_list
from tests.loopback import QuietHandler, serving


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(LOOPBACK_HTTP, "1")
    file = write_list(tmp_path, hotpot_row(1, [("Mill", ["The Weir drives the mill."])], [("Mill", 0)]))

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self.answer(file.read_bytes(), status=200 if self.path == "/dev.json" else 404)

    with serving(Handler) as address:
        yield address


def test_what_there_is_is_listed(cli: Cli) -> None:
    told = cli("eval", "fetch").ok()
    assert all(name in told.out for name in ("hotpotqa", "2wiki", "musique", "beir-scifact", "CC BY-SA 4.0"))
    assert json.loads(cli("eval", "fetch", "--json").out)["musique"]["licence"] == "CC BY 4.0"


def test_data_set_is_fetched_with_licence_size_and_citation(cli: Cli, mirror: str, tmp_path: Path) -> None:
    out = tmp_path / "sets"
    fetched = cli("eval", "fetch", "hotpotqa", "--out", str(out), "--url", f"{mirror}/dev.json").ok()
    assert all(said in fetched.err for said in ("7,405 questions", "CC BY-SA 4.0", "Yang et al."))
    assert "Fetched: 1 questions, 1 documents" in fetched.out
    assert f"--dataset hotpotqa:{out / 'hotpot_dev_distractor_v1.json'}" in fetched.out
    again = json.loads(cli("eval", "fetch", "hotpotqa", "--out", str(out), "--json").out)
    assert (again["questions"], again["downloaded"]) == (1, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("squad",), "Allowed: hotpotqa"),
        (("musique",), "Take musique_ans_v1.0_dev.jsonl out of the archive"),
        (("hotpotqa", "--url", "{mirror}/missing.json"), "HTTP 404"),
        (("hotpotqa", "--url", "no address"), "Save it as"),
    ],
)
def test_what_cannot_be_fetched_ends_with_2_and_the_way_by_hand(
    cli: Cli, mirror: str, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    filled = (argument.format(mirror=mirror) for argument in arguments)
    cli("eval", "fetch", *filled, "--out", str(tmp_path / "sets")).refused(said)
