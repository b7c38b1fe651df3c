"""``judgetree eval calibrate --judge …``: fits that later judges find, and that other judges are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from langchain_core.documents import Document

from judgetree.app.commands.eval.calibrate import FittedName
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.evaluation.calibration.fitting import FittedKind
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import SettingsError
from judgetree.modules.judge.contract import AnyJudge, judges_sets
from judgetree.modules.judge.factory import create_judge
from judgetree.modules.judge.fits import fits_file, read_fits
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.settings import load_settings
from tests.app.commands.test_eval_calibrate import judging, write_mills
from tests.app.conftest import Cli


@pytest.fixture
def train(tmp_path: Path) -> str:
    return write_mills(tmp_path / "mills_train.json")


def judge_of(kind: str) -> AnyJudge:
    """As a later command has it."""
    settings = load_settings()
    return create_judge(kind, create_llm(settings.judge_spec, settings, CallGate(1)), spec="", settings=settings)


def p_needed(kind: str, *passages: str) -> list[tuple[float | None, bool]]:
    judge, meter = judge_of(kind), CallMeter(node="judge")
    assert judges_sets(judge)
    chunks = [Document(page_content=text, metadata={"chunk_id": text}) for text in passages]
    query = "How long is the river of mill 3?"
    given = background_loop().run(judge.judge_set(query, chunks, meter=meter, expand=False))
    return [(each.p_needed, each.is_calibrated) for each in given.verdicts]


def overconfident(request: ReceivedRequest) -> ChatReply:
    """Says 99 % of a question's own passages, and 60 % of all others."""
    number = request.prompt.query.rstrip("?").rpartition(" ")[2]
    shown = re.split(r"^\[\d+\]\n", request.messages[-1][1], flags=re.MULTILINE)[1:]
    percents = [99 if re.match(rf"(Mill|River) {number}\.", text) else 60 for text in shown]
    entries = [
        {"passage": at, "score": 1, "percent": percent, "next_query": ""}
        for at, percent in enumerate(percents, start=1)
    ]
    return ChatReply(text=json.dumps({"reason": "r", "suffices": False, "passages": entries}))


def test_batched_verdicts_are_calibrated_in_one_call_a_question(cli: Cli, train: str, scripted: ScriptedServer) -> None:
    scripted.responses = overconfident
    told = cli("eval", "calibrate", "--judge", "batched", "--dataset", train).ok()
    assert "20 questions, 80 passages; 20 calls paid" in told.out
    assert "P(needed) by Platt's sigmoid; expected calibration error" in told.out
    assert re.search(
        r"^Reliability before: 0\.60 said, 0\.00 gold \(40\); 0\.99 said, 1\.00 gold \(40\)$", told.out, re.M
    )
    [fit] = read_fits(fits_file(load_settings()))
    assert (fit.made_for["kind"], fit.questions, fit.dataset) == ("batched", 20, train)
    [(own, is_calibrated), (other, _)] = p_needed("batched", "Mill 3. Old.", "Weir 4. Old.")
    assert is_calibrated
    assert own is not None and other is not None
    assert own > 0.8
    assert other < 0.2


def test_embedding_thresholds_cost_no_call_and_belong_to_their_embedder(
    cli: Cli, train: str, scripted: ScriptedServer
) -> None:
    with pytest.raises(SettingsError, match="The judge 'embedding' needs a fit, and there is none yet"):
        judge_of("embedding")
    told = cli("eval", "calibrate", "--judge", "embedding", "--dataset", train).ok()
    assert "0 calls paid, 0 from the cache" in told.out
    assert judge_of("embedding").fingerprint()["threshold_needed"] != "0.5"
    [(own, is_calibrated), (other, _)] = p_needed("embedding", "Mill 3 stands on river 3.", "Beer is brewed.")
    assert is_calibrated
    assert (own or 0.0) > (other or 0.0)
    [fit] = read_fits(fits_file(load_settings()))
    another = ({"local:use", "local:minilm"} - {fit.made_for["embedder"]}).pop()
    with pytest.raises(SettingsError, match=f"embedder '{fit.made_for['embedder']}' there, '{another}' here"):
        judge_of(f"embedding:embedder={another}")


def test_cascade_asks_only_what_is_unclear(cli: Cli, train: str, scripted: ScriptedServer) -> None:
    cli("eval", "calibrate", "--judge", "cascade", "--dataset", train).ok()
    scripted.responses = overconfident
    before = scripted.requests["batch"]
    p_needed("cascade:judge=batched", "Beer is brewed of malt in Bavaria.")
    assert scripted.requests["batch"] == before


def test_fused_weights_are_readable_and_belong_to_their_model(cli: Cli, train: str, scripted: ScriptedServer) -> None:
    scripted.responses = judging(0.7, 0.2)
    told = json.loads(cli("eval", "calibrate", "--judge", "fused", "--dataset", train, "--json").ok().out)
    assert told["paid_calls"] == 80
    kept = json.loads(fits_file(load_settings()).read_text())
    assert kept["format"] == "judgetree-judge-fits/1"
    [fit] = kept["fits"]
    assert fit["parameters"].keys() == {"p_needed", "similarity", "bm25", "rank", "margin", "bias", "threshold"}
    assert fit["parameters"]["p_needed"] > 0
    assert fit["dataset_digest"]
    assert judge_of("fused").fingerprint()["fit"]
    settings = load_settings()
    llm = create_llm(f"{scripted.base_url}#another", settings, CallGate(1))
    with pytest.raises(SettingsError, match="model 'scripted' there, 'another' here"):
        create_judge("fused", llm, spec="", settings=settings)


def test_the_names_of_the_command_are_those_of_the_fits() -> None:
    assert get_args(FittedName) == get_args(FittedKind)
