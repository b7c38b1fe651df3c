from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.reader.prompts import REFUSAL
from tests.app.conftest import CHAIN, CHINESE, COLLECTION, SUB_QUESTION, Cli, new_thread, write_corpus


def test_the_answer_alone_goes_to_standard_output(cli: Cli, home: Path) -> None:
    done = cli("ask", CHAIN.question, "-c", COLLECTION)
    assert (done.status, done.out) == (0, "40 mm\n")
    assert f"depth 1: {SUB_QUESTION}" in done.err
    assert "depth 1: → 40 mm" in done.err
    assert "answered" in done.err
    assert "judgetree tree " in done.err


def test_json_is_one_document_with_the_tree(cli: Cli, home: Path) -> None:
    thread = new_thread()
    done = cli("ask", CHAIN.question, "-c", COLLECTION, "--json", "--thread-id", thread)
    document = json.loads(done.out)
    assert (document["answer"], document["status"], document["thread_id"]) == ("40 mm", "answered", thread)
    assert document["system"] == "judge"
    assert set(document["usage"]) == {"llm_calls", "prompt_tokens", "completion_tokens", "seconds"}
    assert document["tree"]["root"]["query"] == CHAIN.question


def test_a_finished_thread_is_told_again_without_a_call(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    thread = new_thread()
    cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread)
    scripted.reset()
    again = cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread)
    assert (again.status, again.out) == (0, "40 mm\n")
    assert "no model calls" in again.err
    assert not scripted.requests


def test_resume_takes_question_and_options_from_the_thread(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    thread = new_thread()
    options = ("--topk", "2", "--max-depth", "1", "--max-llm-calls", "20", "--search-type", "sparse")
    options += ("--evidence-tokens", "4000", "--evidence-ranker", "log_det")
    scripted.configure(faults={"500": 1.0}, fault_kinds=["read"])
    failed = cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread, *options, "--judge", "logprob")
    assert (failed.status, failed.out) == (1, "")
    assert f"judgetree ask --resume --thread-id {thread}" in failed.err
    scripted.configure(faults={})
    scripted.reset()
    done = cli("ask", "--resume", "--thread-id", thread)
    assert (done.status, done.out) == (0, "40 mm\n")
    assert not scripted.requests["needed"]
    cli("ask", "--resume", "--thread-id", thread, "--evidence-ranker", "mmr").refused("evidence_ranker")


def test_a_ranker_of_evidence_wants_a_limit(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    ranker, told = ("--evidence-ranker", "mmr"), "chooses within a limit of tokens: give evidence_tokens too."
    cli("ask", CHAIN.question, "-c", COLLECTION, *ranker).refused(told)
    cli("chat", "-c", COLLECTION, *ranker).refused(told)
    cli("eval", "run", "--out", str(home / "run"), "--dataset", "hotpotqa:x.json", *ranker).refused(
        "give evidence_tokens too"
    )
    assert not scripted.requests


def test_an_agent_has_its_tools_when_it_is_resumed(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    thread = new_thread()
    options = ("--system", "react", "--tool", "calculator", "--thread-id", thread)
    scripted.configure(faults={"500": 1.0}, fault_kinds=["read"])
    assert cli("ask", CHAIN.question, "-c", COLLECTION, *options).status == 1
    scripted.configure(faults={})
    done = cli("ask", "--resume", "--thread-id", thread)
    assert (done.status, done.out) == (0, "40 mm\n")
    shown = cli("calls", thread, "--json")
    assert "Tools:\\ncalculator[input]: computes" in shown.out


@pytest.mark.parametrize(
    ("then", "now", "advice"),
    [
        (
            ["--temperature", "0.3", "--thinking"],
            [],
            "(temperature: 0.3 then, none now; thinking: on then, none now). Give --temperature 0.3, give --thinking, ",
        ),
        ([], ["--temperature", "0.7"], "Leave out --temperature and JUDGETREE_TEMPERATURE, or use another thread id."),
        ([], ["--llm", "other"], "(llm: scripted then, other now). Give --llm with the model scripted, or"),
        ([], ["--judge-llm", "other"], "(judge_llm: scripted then, other now). Give --judge-llm with the model"),
        ([], ["--judge", "batched"], "(judge: generated then, batched now). Give --judge generated, or"),
        ([], ["--topk", "2"], "(topk: 3 then, 2 now). Leave out --topk, or use another thread id."),
        (["--topk", "2"], ["--topk", "4"], "(topk: 2 then, 4 now). Give --topk 2, or use another thread id."),
        (
            [],
            ["--policy", "best_first"],
            "(policy: breadth then, best_first:rank_weight=0.5 now). Leave out --policy, or",
        ),
        (
            ["--policy", "mcts:c=1.4"],
            ["--policy", "breadth"],
            "Give --policy mcts:backup=min,c=1.4,discount=0.5,tries=3,widening=0.5, or",
        ),
        ([], ["--no-judge-leaves"], "(judge_leaves: True then, False now). Leave out --no-judge-leaves, or"),
        ([], ["--insert-block"], "(insert_block: False then, True now). Leave out --insert-block, or"),
        (["--insert-block"], ["--no-insert-block"], "Give --insert-block, or"),
    ],
)
def test_a_refused_resume_names_options_as_they_are_typed(
    cli: Cli, home: Path, scripted: ScriptedServer, then: list[str], now: list[str], advice: str
) -> None:
    thread, judge = new_thread(), ("--judge", "generated")
    scripted.configure(faults={"500": 1.0}, fault_kinds=["read"])
    assert cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread, *judge, *then).status == 1
    scripted.configure(faults={})
    now = [f"{scripted.base_url}#other" if each == "other" else each for each in now]
    refused = cli("ask", "--resume", "--thread-id", thread, *now)
    assert refused.status == 2
    assert advice in " ".join(refused.err.split())


@pytest.mark.parametrize("change", [[CHINESE.question], [CHAIN.question, "--max-depth", "1"]])
def test_the_thread_of_another_question_or_other_options_is_refused(cli: Cli, home: Path, change: list[str]) -> None:
    thread = new_thread()
    cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread)
    cli("ask", *change, "-c", COLLECTION, "--thread-id", thread).refused("holds another run")


@pytest.mark.parametrize(
    ("question", "answer", "status"),
    [("Who painted the ladders?", REFUSAL, "refused"), (CHINESE.question, "四十毫米", "answered")],
)
def test_a_refusal_is_an_answer_too(cli: Cli, home: Path, question: str, answer: str, status: str) -> None:
    done = cli("ask", question, "-c", COLLECTION, "--system", "naive")
    assert (done.status, done.out) == (0, f"{answer}\n")
    assert status in done.err


def test_the_closed_book_needs_no_collection(cli: Cli, scripted: ScriptedServer) -> None:
    scripted.configure(knows_by_heart=True)
    done = cli("ask", CHAIN.question, "--system", "llm")
    assert (done.status, done.out) == (0, "40 mm\n")


@pytest.mark.parametrize("system", ["ircot", "iter_retgen", "self_ask", "react", "search_r1", "crag"])
def test_baselines_take_the_second_step_in_rounds(cli: Cli, home: Path, scripted: ScriptedServer, system: str) -> None:
    options = ("-c", COLLECTION, "--system", system, "--topk", "2", "--thread-id", "t")
    once = cli("ask", CHAIN.question, *options)
    assert (once.status, once.out) == (0, "40 mm\n"), once.err
    asked = scripted.requests.total()
    assert cli("ask", CHAIN.question, *options).out == "40 mm\n"
    assert scripted.requests.total() == asked


@pytest.mark.parametrize(
    ("strategy", "answer"), [("map_reduce", "40 mm"), ("refine", "40 mm"), ("map_rerank", REFUSAL)]
)
def test_strategies_read_passage_by_passage_and_are_remembered(
    cli: Cli, home: Path, scripted: ScriptedServer, strategy: str, answer: str
) -> None:
    thread = new_thread()
    options = ("--system", "naive", "--topk", "4", "--strategy", strategy, "--thread-id", thread)
    scripted.configure(faults={"500": 1.0})
    assert cli("ask", CHAIN.question, "-c", COLLECTION, *options).status == 1
    scripted.configure(faults={})
    done = cli("ask", "--resume", "--thread-id", thread)
    assert (done.status, done.out) == (0, f"{answer}\n"), done.err
    assert not scripted.requests["read"]
    cli("ask", "--resume", "--thread-id", thread, "--strategy", "stuff").refused("reader.strategy")


def test_a_failed_baseline_is_listed_and_can_be_resumed(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    scripted.configure(faults={"500": 1.0})
    assert cli("ask", CHAIN.question, "-c", COLLECTION, "--system", "ircot", "--thread-id", "t").status == 1
    assert "ircot" in cli("threads").out
    assert "failed" in cli("threads").out
    scripted.configure(faults={})
    assert cli("ask", "--resume", "--thread-id", "t").out == "40 mm\n"


def test_a_spent_budget_is_told(cli: Cli, home: Path) -> None:
    done = cli("ask", CHAIN.question, "-c", COLLECTION, "--max-llm-calls", "2").ok()
    assert "budget" in done.err


def test_pictures_are_written(cli: Cli, home: Path, tmp_path: Path) -> None:
    svg, html = tmp_path / "树.svg", tmp_path / "tree.html"
    cli("ask", CHAIN.question, "-c", COLLECTION, "--svg", str(svg), "--html", str(html)).ok()
    assert "</svg>" in svg.read_text(encoding="utf-8")
    assert SUB_QUESTION in html.read_text(encoding="utf-8")


@pytest.mark.parametrize("target", ["folder", "missing/tree.svg", "-"])
def test_a_file_that_cannot_be_written_is_told_before_a_call_is_paid(
    cli: Cli, home: Path, tmp_path: Path, scripted: ScriptedServer, target: str
) -> None:
    (tmp_path / "folder").mkdir()
    cli("ask", CHAIN.question, "-c", COLLECTION, "--html", target if target == "-" else str(tmp_path / target)).refused(
        "--html"
    )
    assert not scripted.requests


def test_the_models_of_one_question_are_chosen_by_options(
    cli: Cli, home: Path, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGETREE_LLM", "http://127.0.0.1:9/v1#nobody")
    asked: list[str] = []
    scripted.responses = lambda request: asked.append(f"{request.model} {request.prompt.kind}")
    models = ("--llm", f"{scripted.base_url}#reader", "--judge-llm", f"{scripted.base_url}#judge")
    done = cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", "own-models", *models)
    assert (done.status, "40 mm" in done.out) == (0, True)
    assert set(asked) == {"judge judge", "reader read"}


OWN_JUDGE = """
from judgetree import Verdict

class Mine:
    def fingerprint(self):
        return {"kind": "mine"}

    async def judge(self, query, chunk, *, meter, expand=True):
        return Verdict(status="judged", score=2, reason="my own verdict")
"""


def test_a_judge_of_one_s_own_is_named_by_its_import_path(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("my_judge.py").write_text(OWN_JUDGE, encoding="utf-8")
    asked = cli(
        "ask", CHAIN.question, "-c", COLLECTION, "--thread-id", "own-judge", "--judge", "my_judge:Mine", "--json"
    )
    assert asked.status == 0, asked.err
    assert "my own verdict" in asked.out
    resumed = cli("ask", "--resume", "--thread-id", "own-judge", "--json")
    assert json.loads(resumed.out)["usage_this_run"]["llm_calls"] == 0, "the options come from the thread"
    other = cli("ask", "--resume", "--thread-id", "own-judge", "--judge", "generated")
    assert "Give --judge my_judge:Mine" in other.err, other.err
    unknown = cli("ask", CHAIN.question, "-c", COLLECTION, "--judge", "mine")
    assert (unknown.status, "Unknown judge 'mine'. Allowed: auto, " in unknown.err) == (2, True)


def test_verdicts_that_failed_are_counted_with_the_first_reason(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("failing_judge.py").write_text(
        OWN_JUDGE.replace("return Verdict(", "raise ValueError('no weights.')  # "), encoding="utf-8"
    )
    command = ("ask", CHAIN.question, "-c", COLLECTION, "--topk", "2", "--judge", "failing_judge:Mine")
    asked = cli(*command)
    assert asked.status == 1
    assert (
        "The judge failed on every chunk (2), so the answer rests on chunks without a verdict. The first:" in asked.err
    )
    assert "no weights" in asked.err
    assert "To do: " in asked.err
    assert ".. " not in asked.err
    as_json = cli(*command, "--json")
    assert (as_json.status, json.loads(as_json.out)["judging_failed"]) == (1, True)


def test_a_judge_that_fails_on_some_chunks_is_told_and_no_failure(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("unsteady_judge.py").write_text(
        OWN_JUDGE.replace("return Verdict(", "1 / int(chunk.metadata['rank']); return Verdict("), encoding="utf-8"
    )
    asked = cli("ask", CHAIN.question, "-c", COLLECTION, "--topk", "2", "--judge", "unsteady_judge:Mine", "--json").ok()
    assert "1 chunk without a verdict, since the judge failed. The first: " in asked.err
    assert json.loads(asked.out)["judging_failed"] is False


OWN_RETRIEVER = """
class Mine:
    def __init__(self, index, topk):
        self.index, self.topk = index, topk

    def fingerprint(self):
        return {"topk": "many", "search_type": "fancy", "collection": "elsewhere"}

    async def asearch(self, query, *, meter):
        from judgetree import Retriever

        return await Retriever(self.index, topk=self.topk, search_type="sparse").asearch(query, meter=meter)
"""


def test_a_resumed_thread_has_its_own_retriever_with_collection_and_topk(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("my_search.py").write_text(OWN_RETRIEVER, encoding="utf-8")
    own = ("--retriever", "my_search:Mine", "--topk", "2", "--json")
    asked = cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", "own-retriever", *own)
    assert asked.status == 0, asked.err
    resumed = cli("ask", "--resume", "--thread-id", "own-retriever", "--json")
    assert resumed.status == 0, resumed.err
    assert json.loads(resumed.out)["usage_this_run"]["llm_calls"] == 0


def test_links_are_followed_from_a_graph_that_must_be_of_the_present_content(
    cli: Cli, home: Path, tmp_path: Path, scripted: ScriptedServer
) -> None:
    options = (CHAIN.question, "-c", COLLECTION, "--topk", "1", "--expand", "both:neighbours=2")
    cli("ask", *options).refused("has no graph 'links' yet", f"judgetree index --collection {COLLECTION} --graph links")
    write_corpus(tmp_path / "more", {"c.md": "# The drum\n\nIt is grey."})
    cli("index", str(tmp_path / "more"), "-c", COLLECTION, "--graph", "links").ok()
    document = json.loads(cli("ask", *options, "--json").ok().out)
    chunks = document["tree"]["root"]["chunks"]
    assert [each["metadata"].get("linked_by") for each in chunks] == [None, "The drum"]
    assert document["answer"] == "40 mm"
    thread = new_thread()
    scripted.configure(faults={"500": 1.0}, fault_kinds=["read"])
    cli("ask", *options, "--thread-id", thread)
    scripted.configure(faults={})
    cli("ask", "--resume", "--thread-id", thread, "--expand", "link").refused("expansion: both:neighbours=2 then")
    cli("ask", "--resume", "--thread-id", thread).ok()
    (tmp_path / "more" / "c.md").write_text("# The drum\n\nIt is green.")
    cli("index", str(tmp_path / "more"), "-c", COLLECTION).ok()
    cli("ask", *options).refused("is out of date")


def test_a_search_takes_its_graph_from_the_option_or_the_resumed_thread(
    cli: Cli, home: Path, scripted: ScriptedServer
) -> None:
    options = (CHAIN.question, "-c", COLLECTION, "--search-graph", "entities")
    cli("ask", *options).refused("has no graph 'entities' yet", f"--collection {COLLECTION} --graph entities")
    cli("index", "-c", COLLECTION, "--graph", "entities").ok()
    thread = new_thread()
    scripted.configure(faults={"500": 1.0}, fault_kinds=["read"])
    cli("ask", *options, "--thread-id", thread)
    scripted.configure(faults={})
    assert cli("ask", "--resume", "--thread-id", thread).ok().out == "40 mm\n"


def test_an_unknown_expansion_is_refused(cli: Cli, home: Path) -> None:
    cli("ask", CHAIN.question, "-c", COLLECTION, "--expand", "graph").refused("sub_question, link, both")
