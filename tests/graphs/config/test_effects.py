"""Keys that have no effect are refused or named, at every door, from what each says that it needs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest

from judgetree import RagConfig, evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.serving.options import ServerOptions
from judgetree.app.server.serving.served import Served
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.graphs.config.conversing import ConversationSwitches
from judgetree.graphs.config.given_keys import GivenKeys
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.session import RagSession
from judgetree.graphs.systems.registry import SYSTEMS
from judgetree.modules.config.config import Trait
from judgetree.modules.config.effects import LACKS, lacking
from judgetree.modules.errors import SettingsError
from judgetree.modules.retriever.reordering import REORDERING
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import CHAIN, write_corpus
from tests.graphs.fakes import FakeLLM
from tests.graphs.two_steps import ROOT, context_of

MODEL = "http://127.0.0.1:9/v1#other"
SAMPLES: Mapping[str, object] = {
    "judge_llm": MODEL,
    "retriever": "prebuilt:index.yaml",
    "topk": 2,
    "search_type": "dense",
    "ranker_type": "weighted",
    "ranker_params": {"k": 30},
    "rerank": MODEL,
    "rerank_input_top_n": 20,
    "score_threshold": 0.5,
    "search_graph": "links",
    "judge": "batched",
    "policy": "best_first",
    "stop": "any",
    "max_rec_depth": 1,
    "judge_leaves": False,
    "width": 1,
    "max_sub_runs": 1,
    "sharing": "equal",
    "expansion": "link",
    "evidence": "all",
    "evidence_tokens": 100,
    "evidence_ranker": "mmr",
    "strategy": "refine",
    "insert_block": True,
    "insert_block_llm": MODEL,
    "tools": ("calculator",),
    "corpus": "notes",
    "embeddings": MODEL,
    "history": "given",
    "conversation": ConversationSwitches(summary_memory=True),
}
"""A value besides the default for each key that may have no effect."""
ALWAYS = {
    *("llm", "temperature", "thinking", "prompts", "answer_form"),
    *("max_llm_calls", "max_tree_tokens", "max_tree_cost_usd", "max_tree_seconds"),
    *(
        "dataset",
        "split",
        "limit",
        "sample",
        "ids",
        "systems",
        "repeats",
        "seed",
        "baseline",
        "metrics",
        "primary",
        "match_budget",
    ),
    *("cache", "fail_after", "record", "concurrency", "max_calls", "max_tokens", "max_cost"),
    *("columns", "separator", "encoding", "skip_bad_rows"),  # refused beside a data set that is no file of one's own
}
"""Keys that have an effect on any system."""
BESIDE = {
    name: needs for name in RagConfig.model_fields if (needs := [*RagConfig.key(name).needs]) and set(needs) - {*LACKS}
}
"""Keys that another key gives an effect."""


def test_every_key_says_what_it_needs() -> None:
    said = {name for name in Experiment.model_fields if Experiment.key(name).needs}
    assert said == set(SAMPLES)
    assert set(Experiment.model_fields) == said | ALWAYS
    assert set(LACKS) == set(get_args(Trait))
    for name in said:
        for need in Experiment.key(name).needs:
            key, is_exact, value = need.partition("=")
            assert need in LACKS or key in RagConfig.model_fields, name
            for each in value.split("|") if is_exact else ():
                assert getattr(RagConfig(**{key: each}), key) == each, "a value that the key may have"
    assert RagConfig.key("rerank_input_top_n").needs == ("rerank", f"ranker_type={'|'.join(REORDERING)}")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", [name for name in SAMPLES if name in RagConfig.model_fields])
def test_a_session_refuses_what_its_system_has_no_use_for(system: str, name: str, tmp_path: Path) -> None:
    has = SYSTEMS[system].has
    beside = {"evidence_tokens": 9} if name == "evidence_ranker" else {}
    given = {name: SAMPLES[name], **beside, "settings": load_settings(home=tmp_path, checkpoints="memory:")}
    collection = "notes" if SYSTEMS[system].retrieves and name != "retriever" else ""
    if lack := lacking(RagConfig, name, has):
        with pytest.raises(SettingsError, match=f"^The system '{system}' {LACKS[lack]}: leave "):
            RagSession(collection, system=system, **given)  # type: ignore[arg-type]
    else:
        RagSession(collection, system=system, **given).close()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", BESIDE)
def test_a_key_is_named_until_another_gives_it_an_effect(name: str) -> None:
    has = SYSTEMS["naive"].has
    given = GivenKeys.of(
        None, {name: SAMPLES[name], **({"evidence_tokens": 9} if name == "evidence_ranker" else {})}, where="It"
    )
    remarks = [*given.without_effect(has, GivenKeys())]
    if name != "evidence_ranker":  # which no configuration has without evidence_tokens
        assert len(remarks) == 1
        assert remarks[0].startswith(f"{name}={SAMPLES[name]} has no effect: it needs ")
    for need in BESIDE[name]:
        if need in LACKS:
            assert not [*given.without_effect(has | {need}, GivenKeys())]  # type: ignore[arg-type]
            continue
        key, is_exact, value = need.partition("=")
        question = GivenKeys.of(None, {key: value.split("|")[0] if is_exact else SAMPLES[key]}, where="It")
        assert not [*given.without_effect(has, question)], need


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="judgetree"):
        yield caplog


def said_by(warned: pytest.LogCaptureFixture) -> list[str]:
    said = [each.getMessage() for each in warned.records if "has no effect" in each.getMessage()]
    warned.clear()
    return said


def test_a_question_names_a_key_once(warned: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    settings = load_settings(checkpoints="memory:", home=tmp_path)
    with RagSession(context=context_of(FakeLLM(lambda _: "Vellin")), settings=settings) as session:
        session.ask(ROOT, insert_block_llm=MODEL)
        session.ask(ROOT, insert_block_llm=MODEL)
        assert said_by(warned) == [f"insert_block_llm={MODEL} has no effect: it needs insert_block."]
        session.ask(ROOT, max_rec_depth=1)
        assert not said_by(warned)


def test_a_server_names_what_no_served_system_uses(warned: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    settings = load_settings(checkpoints="memory:", home=tmp_path)
    config = RagConfig(width=2, topk=2)
    Served(settings, ServerOptions(systems=("naive", "llm"), config=config))
    assert said_by(warned) == ["width=2 has no effect: it needs a system whose chunks ask sub-questions."]
    Served(settings, ServerOptions(systems=("naive", "judge"), config=config))
    assert not said_by(warned)


QUESTIONS = pd.DataFrame({"question": [CHAIN.question], "answer": [CHAIN.answer]})


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    write_corpus(tmp_path / "docs")
    with ScriptedServer([CHAIN]) as server:
        yield load_settings(llm=f"{server.base_url}#scripted", home=tmp_path / "home", retries=0)


def test_a_run_names_what_none_of_its_systems_uses(
    settings: Settings, tmp_path: Path, warned: pytest.LogCaptureFixture
) -> None:
    keys = {"questions": QUESTIONS, "corpus": f"{tmp_path}/docs", "search_type": "sparse"}
    unused = {"max_rec_depth": 1, "rerank_input_top_n": 20, "history": "given"}
    evaluation.run(out=tmp_path / "a", settings=settings, systems=["naive", "llm"], **keys, **unused)
    assert said_by(warned) == [
        "rerank_input_top_n=20 has no effect: it needs rerank, or ranker_type=model|mmr|facility_location|log_det.",
        "max_rec_depth=1 has no effect: it needs a system that asks further questions.",
        "history=given has no effect: it needs questions of dialogues.",
    ]
    swept = {"ranker_type": ["rrf", "mmr"], "rerank_input_top_n": 20, "systems": ["naive"]}
    evaluation.sweep(out=tmp_path / "b", settings=settings, **keys, **swept)
    assert not said_by(warned), "one of the combinations uses it"
    evaluation.sweep(out=tmp_path / "c", settings=settings, **keys, systems=["naive"], topk=[1, 2], width=1)
    assert said_by(warned) == ["width=1 has no effect: it needs a system whose chunks ask sub-questions."]


def test_a_conversation_names_what_its_questions_do_not_use(
    settings: Settings, warned: pytest.LogCaptureFixture
) -> None:
    with Conversations(system="llm", settings=settings) as conversations:
        conversations.conversation("one").ask(CHAIN.question, max_rec_depth=1)
    assert said_by(warned) == ["max_rec_depth=1 has no effect: it needs a system that asks further questions."]
