"""``judgetree eval calibrate``: from training questions to thresholds that later commands find."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from judgetree.app.scripted.answers import ChatReply, parse_prompt
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.labels.labelling import Labelling
from judgetree.evaluation.rows.store import RowChunk, RunStore
from judgetree.evaluation.rows.trees import TreeStore
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.judge.factory import create_judge
from judgetree.modules.judge.prompts import NEEDED_SYSTEM
from judgetree.modules.judge.thresholds import read_calibrations, thresholds_file
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.prompts.reading import load_prompts
from judgetree.modules.settings import load_settings
from tests.app.conftest import Cli, Dam, killed
from tests.eval.run_rows import run_row

QUESTIONS = 20
Reply = Callable[[ReceivedRequest], ChatReply]


def write_mills(file: Path, *, single_hop: bool = False) -> str:
    """HotpotQA rows whose questions need two of four paragraphs, or with a single hop the first alone."""
    rows = [
        {
            "_id": f"q{at}",
            "question": f"How long is the river of mill {at}?",
            "answer": f"{at} miles",
            "type": "bridge",
            "context": [
                [f"Mill {at}", [f"Mill {at} stands on river {at}."]],
                [f"River {at}", [f"River {at} is {at} miles long."]],
                [f"Weir {at}", [f"Weir {at} is old."]],
            ],
            "supporting_facts": [[f"Mill {at}", 0], *([] if single_hop else [[f"River {at}", 0]])],
        }
        for at in range(QUESTIONS)
    ]
    file.write_text(json.dumps(rows), encoding="utf-8")
    return f"hotpotqa:{file}"


def judging(p_gold: float, p_other: float, *, gold: Sequence[str] = ("Mill", "River")) -> Reply:
    """A model that says yes, give or take, with one probability to a question's own passages, with another to others.

    ``gold``: what the titles of its own passages begin with.
    """

    def reply(request: ReceivedRequest) -> ChatReply:
        prompt = request.prompt
        assert prompt.kind in ("needed", "alone"), "nothing but yes or no is asked"
        number = prompt.query.rstrip("?").rpartition(" ")[2]
        is_own = prompt.passage.startswith(tuple(f"{title} {number}." for title in gold))
        blur = hashlib.sha256((prompt.query + prompt.passage).encode()).digest()[0] / 2560
        return ChatReply(text="yes", p_yes=(p_gold if is_own else p_other) + blur)

    return reply


@pytest.fixture
def train(tmp_path: Path) -> str:
    return write_mills(tmp_path / "mills_train.json")


def thresholds_of_the_judge() -> tuple[str, str]:
    """As a later command would have them."""
    settings = load_settings()
    llm = create_llm(settings.judge_spec, settings, CallGate(1))
    fingerprint = create_judge("logprob", llm, spec=settings.judge_spec, settings=settings).fingerprint()
    return fingerprint["threshold_needed"], fingerprint["threshold_alone"]


def test_thresholds_are_fitted_and_found_by_later_judges(cli: Cli, train: str, scripted: ScriptedServer) -> None:
    scripted.responses = judging(0.7, 0.2)
    assert thresholds_of_the_judge() == ("0.5", "")
    told = cli("eval", "calibrate", "--dataset", train).ok()
    file = thresholds_file(load_settings())
    assert "20 questions, 80 passages; 80 calls paid, 0 from the cache" in told.out
    assert "AUC within the question 1.000 (0.839 to 1.000)" in told.out
    assert "t2, alone: none: 20 passages that answer alone are needed" in told.out
    assert f"Written: {file}" in told.out
    (kept,) = read_calibrations(file)["scripted"].values()
    assert (kept.dataset, kept.questions, kept.auc) == (train, 20, 1.0)
    assert 0.3 < kept.thresholds.needed <= 0.8
    assert thresholds_of_the_judge() == (str(kept.thresholds.needed), "")

    again = json.loads(cli("eval", "calibrate", "--dataset", train, "--json").out)
    assert (again["paid_calls"], again["cached_calls"]) == (0, 80)
    assert again["thresholds"] == {"needed": kept.thresholds.needed, "alone": None}
    assert again["file"] == str(file)


def test_single_hop_questions_give_the_second_threshold(cli: Cli, tmp_path: Path, scripted: ScriptedServer) -> None:
    scripted.responses = judging(0.7, 0.2, gold=("Mill",))
    spec = write_mills(tmp_path / "single.json", single_hop=True)
    told = cli("eval", "calibrate", "--dataset", spec, "--split", "train", "--json").ok()
    document = json.loads(told.out)
    assert document["paid_calls"] == 2 * document["passages"]
    assert document["thresholds"]["alone"] is not None
    assert document["shares"]["2"] > 0
    assert thresholds_of_the_judge()[1] == str(document["thresholds"]["alone"])


def test_model_that_does_not_discriminate_is_not_written(cli: Cli, train: str, scripted: ScriptedServer) -> None:
    scripted.responses = judging(0.2, 0.7)
    told = cli("eval", "calibrate", "--dataset", train)
    assert told.status == 1
    assert "rates gold passages no higher than others" in told.out
    assert "Nothing was written." in told.out
    assert not thresholds_file(load_settings()).exists()


def test_other_model_than_that_of_the_settings_is_calibrated(cli: Cli, train: str, scripted: ScriptedServer) -> None:
    scripted.responses = judging(0.7, 0.2)
    cli("eval", "calibrate", "--dataset", train, "--judge-llm", f"{scripted.base_url}#Small-Judge").ok()
    assert list(read_calibrations(thresholds_file(load_settings()))) == ["small-judge"]


def test_unusable_questions_are_refused_at_once(cli: Cli, train: str, tmp_path: Path, scripted: ScriptedServer) -> None:
    run = tmp_path / "run"
    assert cli("eval", "run", "--dataset", train, "--systems", "llm", "--limit", "2", "--out", str(run)).status == 0
    scripted.reset()
    cli("eval", "calibrate", "--dataset", train, "--disjoint-from", str(run)).refused("this same data set")
    assert scripted.log == ()


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("mills_dev.json", (), "held back for reporting"),
        ("mills.json", (), "--split train"),
        ("mills_train.json", ("--limit", "19"), "too few"),
        ("mills_train.json", ("--target-recall", "93"), "above 0, up to 1"),
    ],
)
def test_user_errors_end_with_2(cli: Cli, tmp_path: Path, name: str, options: tuple[str, ...], said: str) -> None:
    cli("eval", "calibrate", "--dataset", write_mills(tmp_path / name), *options).refused(said)


def test_endpoint_without_log_probabilities_is_told(cli: Cli, train: str, scripted: ScriptedServer) -> None:
    scripted.configure(logprobs="omitted")
    cli("eval", "calibrate", "--dataset", train).refused("no log probabilities", "use the judge 'generated'")


@pytest.mark.slow
def test_stopped_calibration_goes_on_and_pays_nothing_twice(
    cli: Cli, train: str, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGETREE_MAX_CONCURRENCY", "8")
    scripted.responses = dam = Dam(lambda _: len(scripted.log) >= 40, answer=judging(0.7, 0.2))
    killed("eval", "calibrate", "--dataset", train, at=dam)
    scripted.responses = judging(0.7, 0.2)
    told = json.loads(cli("eval", "calibrate", "--dataset", train, "--json").out)
    assert told["paid_calls"] + told["cached_calls"] == 80
    assert told["cached_calls"] >= 32, "of the 40 that were answered, 8 may not have been kept yet"


def test_own_prompts_are_calibrated_apart(cli: Cli, train: str, tmp_path: Path, scripted: ScriptedServer) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("format: judgetree-prompts/1\njudge_needed: {system: Say yes or no.}\n", encoding="utf-8")
    judged = judging(0.7, 0.2)

    def reply(request: ReceivedRequest) -> ChatReply:
        assert request.messages[0] == ("system", "Say yes or no.")
        prompt = parse_prompt([("system", NEEDED_SYSTEM), request.messages[1]])
        return judged(replace(request, prompt=prompt))

    scripted.responses = reply
    cli("eval", "calibrate", "--dataset", train, "--prompts", str(file)).ok()
    assert thresholds_of_the_judge() == ("0.5", ""), "judgetree's own prompt has no calibration"
    (fitted,) = read_calibrations(thresholds_file(load_settings()))["scripted"].values()
    llm = create_llm(load_settings().judge_spec, load_settings(), CallGate(1))
    judge = create_judge("logprob", llm, spec="", prompts=load_prompts(file))
    assert judge.fingerprint()["threshold_needed"] == str(fitted.thresholds.needed)


def test_labels_by_hand_calibrate_a_judge(cli: Cli, train: str, tmp_path: Path, scripted: ScriptedServer) -> None:
    run = tmp_path / "run"
    write_labelled_run(run, train)
    scripted.responses = judging(0.7, 0.2)
    told = json.loads(cli("eval", "calibrate", "--labels", str(run), "--json").ok().out)
    assert (told["dataset"], told["questions"], told["passages"]) == (f"labels:{run}", 20, 60)
    assert told["auc_within"]["mean"] == 1.0
    (kept,) = read_calibrations(thresholds_file(load_settings()))["scripted"].values()
    assert kept.thresholds.needed == told["thresholds"]["needed"]
    cli("eval", "calibrate", "--labels", str(run), "--disjoint-from", str(run)).refused("were asked in the run")
    cli("eval", "calibrate", "--labels", str(run), "--dataset", train).refused("--labels")
    cli("eval", "calibrate").refused("--dataset", "--labels")
    (run / "labels.jsonl").unlink()
    cli("eval", "calibrate", "--labels", str(run)).refused("0 needed and 0 other", "judgetree label")


def write_labelled_run(folder: Path, spec: str) -> None:
    """A run whose queries found their own passages and the weir's, all labelled."""
    folder.mkdir()
    store, trees = RunStore(folder), TreeStore(folder)
    store.write_manifest({"experiment": {"dataset": spec}})
    for question in load_dataset(spec).questions:
        number = question.id.removeprefix("q")
        texts = (f"Mill {number}. It stands.", f"River {number}. It is long.", f"Weir {number}. It is old.")
        chunks = [ChunkNode(chunk_id=text, text=text, metadata={"verdict": "judged", "score": 1}) for text in texts]
        root = QueryNode(thread_id=question.id, query=question.question, chunks=tuple(chunks))
        trees.append(question.id, SearchTree(root=root))
        found = [RowChunk(key=text, chunk_id=text, depth=0, rank=0, verdict="1") for text in texts]
        store.append(
            run_row(question_id=question.id, question=question.question, thread_id=question.id, chunks=tuple(found))
        )
    work = Labelling(folder, "ada")
    for passage in work.passages:
        work.save(passage.id, 0 if passage.text.startswith("Weir") else 1)
