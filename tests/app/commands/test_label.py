"""``judgetree label``: labels in the terminal, their summary, and the page's address."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from judgetree.evaluation.labels.store import LabelStore
from tests.app.conftest import Cli, command
from tests.eval.run_writer import RunWriter


@pytest.fixture
def run(tmp_path: Path) -> Path:
    RunWriter(tmp_path, "plain").fill("plain")
    return tmp_path


def test_lines_label_passages_and_annotators_are_compared(cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def label(annotator: str, *lines: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return cli("label", str(run), "--terminal", "--annotator", annotator).ok().err

    told = label("ada", "1 names the weir", "b", "2", "?")
    assert "Query: Where is the weir?" in told
    assert "the judge said 2; gold: a supporting fact stands in it" in told
    assert "ada has labelled 2 of 4 passages; 2 are left." in told
    label("ada", "0", "1")
    label("bo", "2", "1", "0", "1", "0")
    labels = LabelStore(run).read()
    assert [(each.score, each.note) for each in labels[:3]] == [(1, "names the weir"), (2, ""), (None, "")]

    summary = cli("label", str(run), "--summary").ok().out
    assert "ada: 4 passages" in summary
    assert "ada and bo: Cohen's kappa" in summary
    document = json.loads(cli("label", str(run), "--summary", "--json").ok().out)
    assert document["labels"]["ada"] == {"2": 1, "1": 1, "0": 1, "cannot tell": 1}
    assert document["settled"] == 4
    assert [each["passages"] for each in document["agreement"]] == [3]


@pytest.mark.parametrize(
    ("line", "advice"), [("3", "'3' is no label. Allowed: 2, 1, 0, ?"), ("1 " + "x" * 5_000, "too long")]
)
def test_a_line_that_is_no_label_ends_a_pipe(
    cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch, line: str, advice: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{line}\n"))
    cli("label", str(run), "--terminal", "--annotator", "ada").refused(advice)


def test_wrong_options_are_told(cli: Cli, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("label", str(run), "--json").refused("--summary")
    cli("label", str(tmp_path / "none")).refused("judgetree eval run --out")

    def unknown() -> str:
        raise OSError("No username set in the environment")

    monkeypatch.setattr("getpass.getuser", unknown)
    cli("label", str(run)).refused("--annotator")


@pytest.mark.slow
def test_the_page_is_served_until_ctrl_c(run: Path) -> None:
    arguments = command("label", str(run), "--annotator", "ada")
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = next(line.split()[-1] for line in process.stderr if line.startswith("Label at "))
        assert httpx.get(address, trust_env=False, timeout=60).status_code == 200
        process.send_signal(2)
        assert "ada has labelled 0 of 4 passages; 4 are left." in process.stderr.read()
    assert process.returncode == 0
