"""Scoring a run with RAGAS: values worked out by hand, what it costs, going on, failures as missing scores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ragas.metrics.collections.faithfulness.util import (
    StatementGeneratorInput,
    StatementGeneratorOutput,
    StatementGeneratorPrompt,
)

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.ragas.metrics import RAGAS_METRICS
from judgetree.evaluation.ragas.models import RagasChat, RagasEmbeddings, build_scoring, prompts_version
from judgetree.evaluation.ragas.scores import RagasStore
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.scoring.replies import StructuredLLM
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.errors import CacheMiss, LoadingError, ModelSetupError, SettingsError
from judgetree.modules.settings import load_settings
from tests.eval.ragas_bench import REFUSED, RagasBench, chunk, row
from tests.modules.model_endpoints import llm_at

WALL = (chunk("Norm A names the drum.", score=1, sub=("How thick is the drum?", "40 mm")), chunk("Odd.", score=0))
PLAIN = (chunk("Bread is baked."), chunk("Ladders are painted grey."))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[RagasBench]:
    with ScriptedServer() as server:
        settings = load_settings(
            llm=f"{server.base_url}#scripted",
            embeddings=f"{server.base_url}#scripted",
            home=tmp_path / "home",
            retries=0,
        )
        bench = RagasBench(server=server, settings=settings, folder=tmp_path / "run")
        bench.begin()
        yield bench


def test_scores_are_those_of_hand(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    bench.add(row("colour", "Grey. And wet.", "naive"), *PLAIN)
    summary = bench.score()
    scores = {(question, metric): score.value for (_, question, metric), score in bench.scores().items()}
    assert (summary.scored, summary.failed, summary.not_applicable) == (12, 0, 0)
    assert scores["wall", "faithfulness"] == 0.0, "what a sub-run answered is a model's text, no evidence"
    assert scores["colour", "faithfulness"] == 0.5
    assert scores["colour", "context_precision"] == pytest.approx(0.5), "the useful chunk comes second"
    assert scores["wall", "context_precision"] == 0.0, "no chunk has what the sub-run answered"
    assert scores["colour", "context_recall"] == 1.0
    assert scores["wall", "answer_correctness"] == pytest.approx(1.0)
    assert scores["colour", "factual_correctness"] == pytest.approx(0.67)
    assert all(-1 <= (scores[question, "answer_relevancy"] or 0) < 1 for question in ("wall", "colour"))


def test_sub_answers_are_evidence_where_they_are_wanted(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    bench.score("faithfulness,context_precision")
    assert bench.score("faithfulness,context_precision", with_sub_answers=True).scored == 2
    assert {score.scorer.name: score.value for score in RagasStore(bench.folder).read()} == {
        "faithfulness": 0.0,
        "context_precision": 0.0,
        "faithfulness[with sub-answers]": 1.0,
        "context_precision[with sub-answers]": pytest.approx(1.0),  # a chunk scored 0 was not read
    }


def test_calls_of_each_metric(bench: RagasBench) -> None:
    bench.add(row("colour", "Grey.", "naive"), *PLAIN)
    bench.score(cache="off")
    calls = {metric: (score.calls, score.embedded_texts) for (_, _, metric), score in bench.scores().items()}
    assert calls == {
        "faithfulness": (2, 0),
        "answer_relevancy": (1, 2),
        "context_precision": (2, 0),
        "context_recall": (1, 0),
        "answer_correctness": (3, 2),
        "factual_correctness": (4, 0),
    }
    assert bench.requests == 13
    assert all(score.prompt_tokens and score.completion_tokens for score in bench.scores().values())


def test_finished_score_is_not_paid_again_and_a_replay_costs_nothing(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    first = bench.score("faithfulness,context_recall")
    requests = bench.requests
    assert first.calls == requests == 3
    again = bench.score()
    assert (again.kept, again.scored) == (2, 4)
    requests = bench.requests
    (bench.folder / "ragas.jsonl").unlink()
    replayed = bench.score(cache="replay")
    assert (replayed.scored, replayed.failed, replayed.calls, bench.requests) == (6, 0, 0, requests)
    assert replayed.cached_calls == first.calls + again.calls + again.cached_calls


def test_replay_of_what_was_never_paid_for_stops(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    with pytest.raises(CacheMiss, match="--cache write"):
        bench.score(cache="replay")
    assert bench.scores() == {}


def test_what_was_cut_off_by_a_kill_is_scored_again(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    bench.score()
    before, file = bench.scores(), bench.folder / "ragas.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    again = bench.score()
    assert (again.scored, again.kept, again.calls) == (1, 5, 0), "the calls were kept"
    assert {key: score.value for key, score in bench.scores().items()} == {
        key: score.value for key, score in before.items()
    }
    assert len(file.read_text(encoding="utf-8").splitlines()) == 6


def test_failed_samples_are_missing_and_say_why(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    bench.server.responses = lambda request: ChatReply(text="I would say yes.")
    failed = bench.score("context_recall,faithfulness")
    assert (failed.scored, failed.failed, failed.calls) == (2, 2, 6), "two repairs each"
    assert {score.value for score in bench.scores().values()} == {None}
    assert all("no JSON object" in score.problem for score in bench.scores().values())
    means = load_report(bench.folder).systems
    assert not means["metric"].str.startswith("ragas_").any(), "no mean, neither 0 nor NaN"
    bench.server.responses = None
    assert bench.score("context_recall,faithfulness").scored == 0
    mended = bench.score("context_recall,faithfulness", retry_failed=True, cache="off")
    assert (mended.scored, mended.failed) == (2, 0)


def test_endpoint_that_breaks_down_leaves_scores_missing(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    bench.server.configure(faults={"500": 1.0})
    assert bench.score("context_recall").failed == 1
    (score,) = bench.scores().values()
    assert (score.value, score.calls) == (None, 1)
    assert "500" in score.problem
    bench.server.configure(faults={})
    assert bench.score("context_recall", retry_failed=True).failed == 0


@pytest.mark.parametrize("fault", ["think", "fence"])
def test_careless_replies_are_understood(bench: RagasBench, fault: str) -> None:
    bench.add(row("colour", "Grey.", "naive"), *PLAIN)
    bench.server.configure(faults={fault: 1.0})
    assert bench.score().failed == 0


def test_number_that_ragas_cannot_give_is_missing(bench: RagasBench) -> None:
    """A model that finds no statement: RAGAS would call that fully correct, or NaN."""
    bench.add(row("wall", "40 mm"), *WALL)
    bench.server.responses = lambda request: ChatReply(text='{"statements": []}')
    bench.score("answer_correctness,faithfulness")
    assert {score.value for score in bench.scores().values()} == {None}


def test_refused_key_ends_the_scoring(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    bench.server.responses = lambda request: ChatReply(status=401, text="no such key")
    with pytest.raises(ModelSetupError, match="check the API key"):
        bench.score()
    assert bench.scores() == {}


def test_prompt_that_is_too_long_is_its_own_samples_failure(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    bench.add(row("colour", "Grey.", "naive"), *PLAIN)

    def refuse_wall(request: object) -> ChatReply | None:
        return ChatReply(status=400, text="too long") if "Norm A" in str(request) else None

    bench.server.responses = refuse_wall
    bench.score("context_recall", concurrency=1)
    values = {question: score.value for (_, question, _), score in bench.scores().items()}
    assert values == {"wall": None, "colour": 1.0}


def test_other_model_or_server_is_another_score(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    bench.score("context_recall")
    with ScriptedServer() as elsewhere:
        for llm in (f"{bench.server.base_url}#other", f"{elsewhere.base_url}#scripted"):
            other = bench.score("context_recall", llm=llm)
            assert (other.scored, other.kept) == (1, 0)
    assert bench.score("context_recall").kept == 1, "the first model's is still there"


def test_run_without_trees_says_so_for_each_sample(bench: RagasBench) -> None:
    bench.add(row("wall", "40 mm"), *WALL)
    (bench.folder / "trees.jsonl").unlink()
    assert bench.score("context_recall,factual_correctness").failed == 1
    assert "no search tree" in bench.scores()["judge", "wall", "context_recall"].problem


def test_many_samples_at_once_each_find_their_tree(bench: RagasBench) -> None:
    for repeat in range(60):
        bench.add(row("colour", "Grey.", "naive", repeat=repeat, thread_id=f"t{repeat}"), *PLAIN)
    summary = bench.score("context_recall", concurrency=32)
    assert (summary.scored, summary.failed, summary.calls) == (60, 0, 1), "the same call is paid for once"


def test_limit_and_systems_choose_rows(bench: RagasBench) -> None:
    for system in ("naive", "judge"):
        bench.add(row("colour", "Grey.", system), *PLAIN)
        bench.add(row("welder", REFUSED, system), *PLAIN)
    assert bench.score("context_recall", systems=("judge",), limit=1).scored == 1
    assert set(bench.scores()) == {("judge", "colour", "context_recall")}
    with pytest.raises(SettingsError, match="It has: naive, judge"):
        bench.score(systems=("llm",))


def test_directory_without_a_run_says_what_to_do(bench: RagasBench) -> None:
    with pytest.raises(LoadingError, match="judgetree eval run --out"):
        bench.score()


def test_prompts_of_each_metric_have_a_version_of_their_own(bench: RagasBench) -> None:
    llm, embedder = StructuredLLM(llm_at(bench.server.base_url)), create_embeddings("local:use", bench.settings)
    versions = [
        prompts_version(build_scoring(metric, llm, embedder, CallMeter(node="ragas")))
        for metric in RAGAS_METRICS.values()
    ]
    assert len(set(versions)) == len(RAGAS_METRICS)


def test_adapters_serve_callers_that_block(bench: RagasBench) -> None:
    meter = CallMeter(node="ragas")
    prompt = StatementGeneratorPrompt().to_string(StatementGeneratorInput(question="What?", answer="A. B."))
    chat = RagasChat(StructuredLLM(llm_at(bench.server.base_url)), meter)
    assert chat.generate(prompt, StatementGeneratorOutput).statements == ["A.", "B."]
    embeddings = RagasEmbeddings(create_embeddings(bench.settings.embeddings, bench.settings), meter)
    assert embeddings.embed_texts(["a"]) == [embeddings.embed_text("a")]
    assert [record["kind"] for record in meter.records] == ["chat", "embedding", "embedding"]
