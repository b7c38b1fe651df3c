"""Runs with prompts of one's own: measured against judgetree's, kept in the manifest, never mixed, and reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree import evaluation
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.calls.prompts import Prompts
from judgetree.modules.errors import SettingsError
from judgetree.modules.reader.prompts import READER
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import CHAIN, CHINESE, write_corpus

SHOUTED = "Answer in capitals. `Evidence` is given."
OWN = {
    "reader": {"system": SHOUTED, "examples": [{"user": "Evidence: {7}", "assistant": "SEVEN"}]},
    "judge": {"user": "Passage:\n{passage}\n\nQuery: {query}"},
}
KEYS: dict[str, object] = {
    "questions": [
        {"question": "Which colour are ladders painted?", "answer": "grey"},
        {"question": CHINESE.question, "answer": CHINESE.answer},
        {"question": CHAIN.question, "answer": CHAIN.answer},
    ],
    "corpus": "./docs",
    "search_type": "sparse",
    "systems": ("naive", "judge"),
}


def says_grey_if_asked_to(request: ReceivedRequest) -> ChatReply | None:
    """Knows the ladders only with the own prompt."""
    is_own = request.messages[0][1] == SHOUTED and request.messages[2] == ("assistant", "SEVEN")
    return ChatReply(text="GREY") if is_own and "ladders" in request.messages[-1][1] else None


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    write_corpus(tmp_path / "docs")
    monkeypatch.chdir(tmp_path)
    with ScriptedServer([CHAIN, CHINESE], responses=says_grey_if_asked_to, prompts=OWN) as server:
        yield load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0)


def run(out: str, settings: Settings, **keys: object) -> evaluation.Report:
    return evaluation.run(out=out, settings=settings, **{**KEYS, **keys})


def manifest_of(out: str) -> dict[str, dict[str, object]]:
    document: dict[str, dict[str, object]] = json.loads(Path(out, "manifest.json").read_text(encoding="utf-8"))
    return document


def test_own_prompts_are_measured_against_judgetrees(settings: Settings) -> None:
    default, own = run("default", settings), run("own", settings, prompts=OWN)
    assert default.questions.groupby("system")["em"].sum().to_dict() == {"naive": 2, "judge": 2}
    assert own.questions.groupby("system")["em"].sum().to_dict() == {"naive": 3, "judge": 3}
    assert not set(default.questions["thread_id"]) & set(own.questions["thread_id"])
    verdicts = [each.verdict for each in evaluation.compare_runs(Path("own"), Path("default"))]
    assert all(verdict.endswith("The prompts differ: judge, reader.") for verdict in verdicts)
    assert manifest_of("default")["experiment"]["prompts"] == {}
    assert manifest_of("own")["experiment"]["prompts"] == own.prompts.to_document()
    assert own.prompts["reader"].user == READER.user, "whole texts, as judgetree's may change"


def test_a_run_is_continued_and_repeated_without_the_file(settings: Settings) -> None:
    file = Path("mine.yaml")
    file.write_text(json.dumps({"format": "judgetree-prompts/1", **OWN}), encoding="utf-8")  # YAML too
    whole = run("whole", settings, prompts=file)
    run("run", settings, prompts=file, limit=1)
    file.unlink()
    with_others = settings.model_copy(update={"prompts": Path("other.yaml")})
    for out, source in (("run", "run"), ("again", "whole")):
        report = evaluation.run(Path(source, "manifest.json"), out=out, settings=with_others, limit=3)
        assert report.questions["prediction"].tolist() == whole.questions["prediction"].tolist()
        assert report.prompts == whole.prompts


def test_prompts_are_never_mixed_in_one_directory(settings: Settings) -> None:
    run("run", settings, systems=("naive",), prompts=OWN)
    accepting = evaluation.RunOptions(accept_changes=True)
    for other in ({}, {"reader": OWN["reader"]}, {**OWN, "judge": {"system": "JSON!"}}):
        with pytest.raises(SettingsError, match=r"holds another run .*prompts\.judge: .*--from run takes") as refused:
            run("run", settings, systems=("naive",), prompts=other, options=accepting)
        assert "--accept-changes" not in str(refused.value)
    assert run("run", settings, systems=("naive",), prompts=OWN).prompts == evaluation.load_report(Path("run")).prompts


def test_the_setting_gives_the_prompts_of_an_experiment_that_names_none(settings: Settings) -> None:
    Path("mine.yaml").write_text("format: judgetree-prompts/1\nreader: {system: Mine.}\n", encoding="utf-8")
    changed = settings.model_copy(update={"prompts": Path("mine.yaml")})
    keys = {"systems": ("naive",), "limit": 1}
    assert run("a", changed, **keys).prompts["reader"].system == "Mine."
    assert run("b", changed, prompts={}, **keys).prompts == Prompts()
    Path("experiment.yaml").write_text("prompts: mine.yaml\n", encoding="utf-8")
    assert (
        evaluation.load_experiment(Path("experiment.yaml"), dataset="x:y").prompts == run("a", changed, **keys).prompts
    )
    with pytest.raises(SettingsError, match=r"prompts: .*no prompt 'readr'"):
        evaluation.load_experiment(dataset="x:y", prompts={"readr": {}})


def test_the_report_shows_what_own_prompts_change(settings: Settings) -> None:
    run("run", settings, prompts=OWN, systems=("naive",), limit=1)
    report = evaluation.write_report(Path("run"))
    markdown = Path("run/report.md").read_text(encoding="utf-8")
    assert "## Prompts of your own: reader, judge\n" in markdown
    assert f"+  system: {SHOUTED}" in markdown
    assert "-    Query: {query}" in markdown
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "<summary>Prompts of your own: reader, judge</summary>" in page
    assert page.index("<summary>Prompts of your own") < page.index(f"+  system: {SHOUTED}")
    assert report.to_document()["prompts"] == report.prompts.to_document()
    run("default", settings, systems=("naive",), limit=1)
    assert "Prompts of your own" not in evaluation.write_report(Path("default")).to_markdown()
