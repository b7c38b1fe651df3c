from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.runs import job_workers
from judgetree.modules import cluster
from judgetree.modules.embedding import cache, worker_pool
from judgetree.modules.index.factory import open_index
from judgetree.modules.index.index import Index
from judgetree.modules.settings import load_settings
from judgetree.modules.structure.graph_files import GraphFiles
from tests.app.conftest import COLLECTION, Cli, command, write_corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus", {"a.md": "Norm A names the drum.", "b.txt": "It is grey."})


def index(cli: Cli, *arguments: str | Path) -> dict[str, object]:
    done = cli("index", *map(str, arguments), "-c", "c", "--json").ok()
    document: dict[str, object] = json.loads(done.out)
    return document


def test_the_report_counts_files_and_names_what_was_skipped(cli: Cli, corpus: Path) -> None:
    (corpus / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
    (corpus / "photo.jpg").write_bytes(b"")
    done = cli("index", str(corpus), "-c", "c").ok()
    assert re.search(r"c: 2 chunks \(2 embedded now(, \d+ a second)?\), embedder local:use", done.out)
    assert "2 new, 0 changed, 0 unchanged, 0 removed, 1 skipped, 1 of other types" in done.out
    assert "skipped broken.pdf: " in done.out
    assert done.err == ""


def test_chunks_out_of_the_vector_cache_are_not_said_to_be_embedded(cli: Cli, corpus: Path) -> None:
    assert [index(cli, corpus)[key] for key in ("embedded", "cached")] == [2, 0]
    (corpus / "c.txt").write_text("It turns.")
    said = cli("index", str(corpus), "-c", "d").ok().out
    assert re.search(r"d: 3 chunks \(1 embedded now(, [\d,]+ a second)?; 2 from the vector cache\), embedder", said)
    report = index(cli, corpus)
    assert [report[key] for key in ("embedded", "cached", "chunks", "unchanged")] == [0, 1, 3, 2]


def test_prune_keeps_what_could_not_be_read(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    more = write_corpus(tmp_path / "more", {"c.md": "A third."})
    index(cli, corpus, more)
    for file, reason in ((corpus / "b.txt", b"\x00\xff"), (more / "c.md", b"")):
        file.write_bytes(reason)
    (corpus / "a.md").unlink()
    (corpus / "a.md").symlink_to(tmp_path / "missing.md")
    for paths in ((corpus, more), (corpus, more, "--strict")):
        done = cli("index", *map(str, paths), "-c", "c", "--json", "--prune")
        report = json.loads(done.out)
        assert (report["removed"], report["chunks"]) == ([], 3)
        assert [file["source"] for file in report["skipped"]] == ["a.md", "b.txt", "more/c.md"]
        assert done.status == ("--strict" in paths)


def test_limits_and_links_are_options(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("Another norm.")
    (corpus / "link.md").symlink_to(tmp_path / "other.md")
    (corpus / "large.txt").write_text("word " * 1000)
    report = index(cli, corpus, "--max-file-mb", "0.001")
    assert [file["source"] for file in report["skipped"]] == ["large.txt", "link.md"]
    followed = index(cli, corpus, "--follow-links", "--max-file-s", "5")
    assert (followed["added"], followed["skipped"]) == (["large.txt", "link.md"], [])


def test_further_paths_are_named_from_their_folder_on(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    more = write_corpus(tmp_path / "more", {"a.md": "Another norm.", "c.md": "A third."})
    both = index(cli, corpus, more)
    assert both["added"] == ["a.md", "b.txt", "more/a.md", "more/c.md"]
    (more / "c.md").unlink()
    pruned = index(cli, corpus, more, "--prune")
    assert (pruned["removed"], pruned["chunks"], pruned["unchanged"]) == (["more/c.md"], 3, 3)


def test_a_prefix_names_the_sources_of_a_folder(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    index(cli, corpus)
    copy = write_corpus(tmp_path / "copy", {"a.md": "A newer norm."})
    assert index(cli, copy, "--prefix", "")["changed"] == ["a.md"]
    assert index(cli, copy, "--prefix", "old")["added"] == ["old/a.md"]


def test_remove_takes_a_source_out(cli: Cli, corpus: Path) -> None:
    index(cli, corpus)
    removed = index(cli, "--remove", "a.md")
    assert (removed["removed"], removed["chunks"]) == (["a.md"], 1)
    cli("index", "--remove", "a.md", "-c", "c").refused("b.txt")


def test_types_choose_files(cli: Cli, corpus: Path) -> None:
    chosen = index(cli, corpus, "--type", "md,pdf")
    assert (chosen["added"], chosen["ignored"]) == (["a.md"], 1)


def test_chunk_sizes_are_remembered(cli: Cli, corpus: Path) -> None:
    (corpus / "long.txt").write_text("One sentence of some length. " * 20)
    first = index(cli, corpus, "--chunk-size", "100", "--chunk-overlap", "0")
    again = index(cli, corpus)
    assert (again["unchanged"], again["chunks"]) == (3, first["chunks"])
    listed = json.loads(cli("collections", "--json").out)
    assert [(row["name"], row["files"], row["chunk_size"]) for row in listed] == [("c", 3, 100)]


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("nowhere",), "nowhere"),
        ((), "--remove"),
        ((".", "--type", "exe"), "Unknown file types: exe. Allowed: "),
        (("empty",), "empty: no file is there. Give another path"),
        ((".", "--type", "pdf"), "files there: 4, of other types than pdf. Give another path or other types"),
        ((".", "--chunk-size", "10", "--chunk-overlap", "20"), "20"),
    ],
)
def test_a_mistake_is_told_with_its_remedy(
    cli: Cli, arguments: tuple[str, ...], advice: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(write_corpus(tmp_path / "here"))
    Path("empty").mkdir()
    done = cli("index", *arguments, "-c", "c")
    done.refused(advice)
    assert "file_type" not in done.err, "no name of Python's"


def test_an_unreadable_pdf_alone_is_told_with_its_reason(cli: Cli, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"no PDF at all")
    cli("index", str(broken), "-c", "c").refused("broken.pdf")


def test_an_embedder_that_does_not_fit_is_told(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_EMBEDDINGS", "local:minilm")
    folder = write_corpus(home.parent / "more", {"new.md": "New."})
    cli("index", str(folder), "-c", COLLECTION).refused("local:use")


def test_encodings_and_all_skipped_files_are_named(cli: Cli, corpus: Path) -> None:
    (corpus / "old.txt").write_text("Die Prüfung der Flansche in München ist jährlich fällig.", encoding="latin-1")
    for number in range(12):
        (corpus / f"{number:02}.txt").write_bytes(b"\x00\xff")
    some = cli("index", str(corpus), "-c", "c").ok().out
    assert "read as cp1252: old.txt" in some
    assert "skipped 09.txt: it is not text" in some
    assert "skipped 10.txt" not in some
    assert "and 2 more; --list-skipped names all" in some
    assert "skipped 11.txt" in cli("index", str(corpus), "-c", "c", "--list-skipped").ok().out


def test_what_a_file_lacks_is_named_by_kind(cli: Cli, corpus: Path) -> None:
    (corpus / "seen.html").write_text("<p>Words.<video></video><img src=a><img src=b>")
    line = "left out of seen.html: 2 undescribed pictures, 1 video"
    assert line in cli("index", str(corpus), "-c", "c").ok().out
    (corpus / "seen.html").write_text("<p>Other words.<video></video>")
    report = json.loads(cli("index", str(corpus), "-c", "c", "--json").ok().out)
    assert report["left_out"] == {"seen.html": {"video": 1}}


def test_an_index_is_built_again_with_other_parameters(cli: Cli, corpus: Path) -> None:
    index(cli, corpus)
    params = '{"dense": {"index_type": "HNSW", "metric_type": "IP", "params": {"M": 8}}}'
    done = cli("index", "-c", "c", "--index-params", params).ok()
    assert "index of dense: HNSW, metric_type IP, M 8" in done.out
    assert "index of sparse" in cli("index", "-c", "c", "--rebuild-index", "dense").ok().out
    for refused in (["--rebuild-index", "none"], ["--index-params", "[1]"], []):
        assert cli("index", "-c", "c", *refused).status == 2


def test_a_graph_is_made_with_the_index_or_of_what_is_there(cli: Cli, tmp_path: Path, home: Path) -> None:
    notes = {"a.md": "# Norm KV-7\n\nAs norm KV-8 says.", "b.md": "# Norm KV-8\n\nIt is grey."}
    corpus = write_corpus(tmp_path / "linked", notes)
    report = index(cli, corpus, "--graph", "links")
    [graph] = report["graphs"]  # type: ignore[misc]
    assert (graph["kind"], graph["passages"], graph["edges"]) == ("links", 2, {"names": 1, "title_of": 1})
    done = cli("index", "-c", "c", "--graph", "links").ok()
    assert done.out.startswith("graph links: 2 passages, 1 phrase, edges 1 names, 1 title_of; 0.0 MB")
    assert Path(graph["path"]).is_relative_to(home)


def test_an_unknown_graph_is_refused_before_anything_is_indexed(cli: Cli, corpus: Path) -> None:
    done = cli("index", str(corpus), "-c", "c", "--graph", "mesh")
    assert (done.status, done.out) == (2, "")
    assert "There is no graph 'mesh'. Allowed: entities, links, triples." in done.err
    assert "none yet" in cli("index", "-c", "c", "--graph", "links").err


def test_triples_cost_what_was_said_before_and_only_once(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    (home / "prices.toml").write_text("[chat.scripted]\nprompt = 1.0\ncompletion = 2.0\n")
    asked = cli("index", "-c", COLLECTION, "--graph", "triples")
    asked.refused("triples: 4 passages, 0 drawn already; 4 calls to scripted, about", "cost about $0.00", "--yes")
    assert scripted.requests.total() == 0

    [first] = json.loads(cli("index", "-c", COLLECTION, "--graph", "triples", "--yes", "--json").ok().out)["graphs"]
    drawn = first["extraction"]
    assert (first["phrases"], first["edges"]) == (8, {"object": 4, "related": 4, "subject": 4})
    assert (drawn["calls"], drawn["triples"], drawn["failed"], drawn["left"]) == (4, 4, [], 0)
    assert 0 < drawn["cost_usd"] < 0.01

    again = cli("index", "-c", COLLECTION, "--graph", "triples").ok()
    assert "triples: 4 triples of 4 passages by scripted, 0 entries dropped; 0 calls paid, $0.00" in again.out
    assert "4 drawn already; 0 calls" in again.err


def test_triples_are_not_paid_for_by_two_commands_at_once(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    command = ("index", "-c", COLLECTION, "--graph", "triples", "--yes")
    with open_index(COLLECTION, load_settings()) as opened:
        files = GraphFiles.of(opened, home)
    with files.making("triples", wait_s=0, on_wait=lambda maker: None):
        done = cli(*command, "--wait", "0")
        maker = "another thread of this process"
        done.refused(f"Waiting for {maker}", f"'triples' of the collection 'notes' is being made by {maker}", "--wait")
        cli("index", "-c", COLLECTION, "--graph", "links").ok()
    assert scripted.requests.total() == 0
    assert "4 calls paid" in cli(*command, "--wait", "0").ok().out


def test_triples_that_cannot_be_had_are_named_and_asked_for_by_the_next_command(
    cli: Cli, home: Path, scripted: ScriptedServer
) -> None:
    command = ("index", "-c", COLLECTION, "--graph", "triples", "--yes")
    done = cli(*command, "--max-passages", "1").ok()
    assert "3 passages left without triples; the same command asks about them" in done.out
    scripted.configure(faults={"prose": 1.0})
    done = cli(*command).ok()
    assert done.out.count("no triples of ") == 3
    assert "It holds no JSON object." in done.out
    assert cli(*command, "--strict").status == 1
    scripted.configure(faults={})
    assert "4 passages by scripted" in cli(*command, "--strict").ok().out


def test_a_prompt_that_never_works_leaves_the_earlier_graph_and_says_what_was_made_before(
    cli: Cli, home: Path, scripted: ScriptedServer, tmp_path: Path
) -> None:
    command = ("index", "-c", COLLECTION, "--graph", "links", "--graph", "triples", "--yes")
    cli(*command).ok()
    shown = cli("graph", "show", "Norm A", "-c", COLLECTION).ok().out
    own = tmp_path / "mine.yaml"
    own.write_text("triples:\n  system: List the facts as JSON.\n")
    done = cli(*command, "--prompts", str(own))
    assert (done.status, done.out, "format: judgetree-prompts/1" in done.err) == (2, "", True)
    own.write_text(f"format: judgetree-prompts/1\n{own.read_text()}")
    done = cli(*command, "--prompts", str(own))
    assert (done.status, done.out.startswith("graph links: 4 passages")) == (2, True)
    assert "There is no triple to make a graph of: all 4 passages that were asked about failed" in done.err
    assert cli("graph", "show", "Norm A", "-c", COLLECTION).ok().out == shown
    done = cli(*command, "--prompts", str(own), "--json")
    assert (done.status, [each["kind"] for each in json.loads(done.out)["graphs"]]) == (2, ["links"])


def test_a_change_of_the_collection_names_the_graphs_that_it_puts_out_of_date(cli: Cli, corpus: Path) -> None:
    assert "graph" not in cli("index", str(corpus), "-c", "c").ok().out
    cli("index", "-c", "c", "--graph", "links", "--graph", "entities").ok()
    assert "out of date" not in cli("index", str(corpus), "-c", "c").ok().out, "nothing has changed"
    (corpus / "c.md").write_text("Another norm.")
    done = cli("index", str(corpus), "-c", "c").ok()
    again = "judgetree index -c c --graph entities --graph links"
    assert f"out of date: graph entities, links; make again: {again}" in done.out
    report = index(cli, "--remove", "c.md", "--graph", "links")
    assert report["older_graphs"] == ["entities"]
    assert report["graphs"]


def test_what_was_indexed_is_reported_as_json_before_a_graph_fails(cli: Cli, corpus: Path) -> None:
    done = cli("index", str(corpus), "-c", "c", "--graph", "triples", "--json")
    assert (done.status, json.loads(done.out)["added"]) == (2, ["a.md", "b.txt"])
    assert cli("index", "-c", "c", "--graph", "triples", "--json").out == ""


def test_what_a_question_reaches_in_a_graph_is_listed_and_written(cli: Cli, home: Path, tmp_path: Path) -> None:
    show = ("graph", "show", "Which vessel does Norm A name?", "-c", COLLECTION)
    cli(*show).refused("has no graph 'triples' yet", "judgetree index --collection notes --graph triples")
    cli("index", "-c", COLLECTION, "--graph", "triples", "--yes").ok()
    listed = cli(*show).ok().out
    assert "Norm A | names | the drum" in listed
    cli("graph", "show", " ", "-c", COLLECTION).refused("The question is empty.")
    files = {form: tmp_path / f"g.{form}" for form in ("svg", "html", "graphml")}
    options = [word for form, file in files.items() for word in (f"--{form}", str(file))]
    document = json.loads(cli(*show, *options, "--json").ok().out)
    assert document["kind"] == "triples"
    assert all("Norm A" in file.read_text(encoding="utf-8") for file in files.values())


def test_workers_need_their_number_and_a_cluster_that_answers(
    cli: Cli, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("index", str(corpus), "-c", "c", "--ray", "127.0.0.1:1").refused("add --workers N")
    pytest.importorskip("ray")
    there = ("-c", "c", "--ray", "127.0.0.1:1", "--workers", "2")
    cli("index", str(corpus), *there).refused("'127.0.0.1:1'")
    index(cli, corpus)
    cli("index", *there, "--remove", "b.txt").ok()  # embeds nothing, so that no cluster is asked
    monkeypatch.setenv("JUDGETREE_EMBEDDINGS", "http://127.0.0.1:1/v1#bge")
    cli("index", str(corpus), *there).refused("behind an endpoint")


@pytest.mark.parametrize("module", [cache, cluster, job_workers, worker_pool])
def test_what_becomes_of_workers_and_saved_vectors_is_said_on_the_terminal(
    cli: Cli, capsys: pytest.CaptureFixture[str], module: ModuleType
) -> None:
    cli("settings").ok()
    logging.getLogger(module.__name__).warning("A worker died")
    assert capsys.readouterr().err == "A worker died\n"


def test_ctrl_c_says_what_is_kept(cli: Cli, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Index, "get_index_done", interrupted)
    done = cli("index", str(corpus), "-c", "c")
    assert (done.status, done.out) == (130, "")
    assert done.err == "Stopped. Embeddings so far are kept; the same command continues.\n"


def test_no_ray_is_started_where_nothing_changed(cli: Cli, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    index(cli, corpus)
    monkeypatch.setattr(sys, "executable", "/no/python")  # that of the head of a Ray
    report = index(cli, corpus, "--workers", "2")
    assert (report["unchanged"], report["embedded"]) == (2, 0)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_workers_make_the_collection_of_one_process(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    plain = index(cli, corpus)
    own_home = {**os.environ, "JUDGETREE_HOME": str(tmp_path / "spread")}
    line = command("index", str(corpus), "-c", "c", "--json", "--workers", "2")
    done = subprocess.run(line, env=own_home, capture_output=True, text=True, check=True)
    spread = json.loads(done.stdout)
    told = ("added", "embedded", "chunks", "embedders")
    assert [spread[key] for key in told] == [plain[key] for key in told]
    digests = []
    for home in (load_settings().home, tmp_path / "spread"):
        with open_index("c", load_settings(home=home)) as opened:
            digests.append(opened.content_digest())
    assert digests[0] == digests[1]


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_two_commands_with_workers_embed_each_chunk_once(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    own_home = {**os.environ, "JUDGETREE_HOME": str(tmp_path / "shared")}
    line = command("index", str(corpus), "-c", "c", "--json", "--workers", "1")
    both = [subprocess.Popen(line, env=own_home, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    said = [each.communicate() for each in both]
    assert [each.returncode for each in both] == [0, 0], said
    reports = [json.loads(out) for out, _ in said]
    assert [report["chunks"] for report in reports] == [2, 2]
    assert sum(report["embedded"] for report in reports) == 2
