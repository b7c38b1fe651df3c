"""``judgetree eval run --from``: the same run again, with its models and data, whatever the settings say now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunStore
from tests.app.commands.test_eval import data, outcomes
from tests.app.conftest import COLLECTION, Cli

__all__ = ["data"]


@pytest.fixture
def done(cli: Cli, data: Path, tmp_path: Path) -> Path:
    """A finished run."""
    out = tmp_path / "a"
    config = tmp_path / "experiment.yaml"
    config.write_text("topk: 1\nsearch_type: sparse\nmax_rec_depth: 2\nseed: 7\n", encoding="utf-8")
    options = ("--dataset", f"standards:{data}", "--systems", "naive,judge", "--config", str(config))
    assert cli("eval", "run", *options, "--out", str(out)).status == 0
    return out


def test_run_is_done_again_as_its_manifest_says(
    cli: Cli, done: Path, tmp_path: Path, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = sum(scripted.requests.values())
    monkeypatch.setenv("JUDGETREE_LLM", "openai:gpt-nonsense")
    again = tmp_path / "b"
    ran = cli("eval", "run", "--from", str(done / "manifest.json"), "--out", str(again), "--cache", "off").ok()
    assert "Not as in" not in ran.err
    assert outcomes(again) == outcomes(done)
    assert sum(scripted.requests.values()) > asked, "by the model of the manifest"
    first, second = (RunStore(folder).read_manifest() or {} for folder in (done, again))
    assert first["identity"] == second["identity"]
    assert first["index"] == second["index"]
    assert first["run_id"] != second["run_id"]


def test_run_of_several_commands_is_repeated_as_a_whole(cli: Cli, done: Path, data: Path, tmp_path: Path) -> None:
    grown, again = tmp_path / "grown", tmp_path / "again"
    for options in (("--systems", "naive", "--limit", "1"), ("--systems", "llm,judge", "--repeat", "2")):
        assert cli("eval", "run", "--dataset", f"standards:{data}", *options, "--out", str(grown)).status == 0
    cli("eval", "run", "--from", str(grown), "--out", str(again), "--json").ok()
    places = {row.place for row in RunStore(again).read_rows()}
    assert places >= {row.place for row in RunStore(grown).read_rows()}
    assert {system for system, _, _ in places} == {"llm", "naive", "judge"}


def test_data_that_was_named_from_another_folder_is_found(
    cli: Cli, done: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`eval report` found them, and `eval run --from` did not."""
    monkeypatch.chdir(data.parent)
    cli("eval", "run", "--dataset", f"standards:{data.name}", "--systems", "llm", "--out", str(tmp_path / "r")).ok()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    cli("eval", "run", "--from", str(tmp_path / "r"), "--out", str(tmp_path / "again")).ok()
    assert outcomes(tmp_path / "again") == outcomes(tmp_path / "r")


def test_manifest_holds_all_that_decides_a_run(done: Path) -> None:
    manifest = RunStore(done).read_manifest() or {}
    identity, index, settings = manifest["identity"], manifest["index"], manifest["settings"]
    assert isinstance(identity, dict)
    assert isinstance(index, dict)
    assert isinstance(settings, dict)
    assert identity.keys() >= {"dataset_digest", "corpus_digest", "llm", "judge_llm", "embeddings", "reader_prompt"}
    assert index.keys() >= {"collection", "content_digest", "embedders", "analyzer", "chunk_size"}
    assert settings.keys() >= {"llm_base_url", "timeout_s", "retries", "milvus_uri", "checkpoints"}
    assert dict(manifest["experiment"])["seed"] == 7  # type: ignore[call-overload]
    assert manifest.keys() >= {"code", "created", "malformed_rows"}


def test_changed_libraries_and_prompts_are_told(cli: Cli, done: Path, tmp_path: Path) -> None:
    file = done / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["code"][-1]["langgraph"] = "0.0.1"
    manifest["identity"]["reader_prompt"] = "of old"
    file.write_text(json.dumps(manifest), encoding="utf-8")
    ran = cli("eval", "run", "--from", str(file), "--out", str(tmp_path / "b"), "--limit", "1").ok()
    assert "langgraph: 0.0.1 then" in ran.err
    assert "reader_prompt: of old then" in ran.err


def test_changed_data_are_refused_by_name(cli: Cli, done: Path, data: Path, tmp_path: Path) -> None:
    data.write_text(data.read_text(encoding="utf-8").replace("millimetres", "mm").replace("40 mm", "41 mm"))
    cli("eval", "run", "--from", str(done / "manifest.json"), "--out", str(tmp_path / "b")).refused("dataset_digest")
    assert not (tmp_path / "b").exists()


def test_another_graph_is_refused(cli: Cli, home: Path, data: Path, tmp_path: Path) -> None:
    draw = ("index", "-c", COLLECTION, "--graph", "triples", "--yes")
    cli(*draw, "--max-passages", "1").ok()
    first, again = tmp_path / "first", ("eval", "run", "--from", str(tmp_path / "first"), "--out", str(tmp_path / "b"))
    options = ("--corpus", COLLECTION, "--systems", "naive", "--search-graph", "triples", "--out", str(first))
    cli("eval", "run", "--dataset", f"standards:{data}", *options).ok()
    cli(*draw).ok()
    cli(*again).refused("The data differ from those of the run to repeat (search_graph.graph: ")


def test_manifest_of_an_older_version_is_gone_on_with_and_done_again(cli: Cli, done: Path, tmp_path: Path) -> None:
    file = done / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    for part in ("settings", "index"):
        del manifest[part]
    for key in ("corpus", "ranker_type", "ranker_params", "seed", "sample", "metrics"):
        del manifest["experiment"][key]
        manifest["identity"].pop(key, None)
    file.write_text(json.dumps(manifest), encoding="utf-8")
    ran = cli("eval", "run", "--from", str(file), "--out", str(done), "--repeat", "2", "--json")
    assert json.loads(ran.out)["asked"] == 4, ran.err
    assert "index" in (RunStore(done).read_manifest() or {})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--from", "nowhere/manifest.json"), "is not the manifest"),
        (("--from", "{done}/rows.jsonl"), "is not the manifest"),
        (("--from", "{done}", "--config", "x.yaml"), "leave out --config"),
    ],
)
def test_no_manifest_ends_with_2(cli: Cli, done: Path, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    filled = (option.format(done=done) for option in options)
    cli("eval", "run", *filled, "--out", str(tmp_path / "b")).refused(said)
