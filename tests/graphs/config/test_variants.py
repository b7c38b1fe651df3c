"""Systems with options of their own: how they are written, and what they may have."""

from __future__ import annotations

import pytest

from judgetree.evaluation.runs.experiment import Experiment
from judgetree.graphs.config import variants
from judgetree.graphs.config.rag_config import RagConfig
from judgetree.graphs.config.variants import read_variant, variant_of
from judgetree.modules.config.typed_values import names_in
from judgetree.modules.errors import SettingsError


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ("naive", "naive"),
        ({"naive": {"topk": 10}}, "naive(topk=10)"),
        ({"naive": {}}, "naive"),
        ("naive( topk = 10 )", "naive(topk=10)"),
        ({"judge": {"judge": "batched", "topk": 4}}, "judge(topk=4; judge=batched)"),
        ("judge(max_rec_depth=2;judge=noisy:auc=0.8,seed=2)", "judge(judge=noisy:auc=0.8,seed=2; max_rec_depth=2)"),
        ({"judge": {"judge_leaves": False, "evidence_tokens": 300}}, "judge(judge_leaves=false; evidence_tokens=300)"),
        ({"naive": {"ranker_type": "weighted", "ranker_params": {"weights": [0.2, 0.8]}}}, None),
    ],
)
def test_a_system_with_options_has_one_label(given: object, label: str | None) -> None:
    (named,) = Experiment(dataset="x:y", systems=[given]).systems
    assert named == (label or named)
    assert read_variant(named).label == named, "it can be read again"
    assert Experiment(dataset="x:y", systems=[named]).systems == (named,)
    assert names_in(f"llm, {named} judge") == ("llm", named, "judge")


def test_options_hold_for_that_system_alone() -> None:
    experiment = Experiment(dataset="x:y", systems=["naive", "naive(topk=10)"], topk=4, strategy="refine")
    assert [experiment.of_system(label).topk for label in experiment.systems] == [4, 10]
    assert experiment.of_system("naive(topk=10)").strategy == "refine"
    assert experiment.identity() == Experiment(dataset="x:y", systems=["llm"], topk=4, strategy="refine").identity()


def test_each_key_is_an_option_of_systems_or_of_whole_runs() -> None:
    """What a run opens once for all systems is no option: it would have no effect."""
    of_runs = {
        "llm",
        "judge_llm",
        "insert_block_llm",
        "temperature",
        "thinking",
        "prompts",
        "retriever",
        "search_graph",
    }
    assert {*RagConfig.model_fields} - {*variants._OPTIONS} == of_runs | {"tools"}
    for name in of_runs:
        with pytest.raises(SettingsError, match=f"{name} is the same for all systems of a run"):
            variant_of("judge", {name: "x"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"naive": {"topk": 0}}, "greater than or equal to 1"),
        ({"naive": {"top_k": 3}}, "Did you mean 'topk'"),
        ({"naive": {"llm": "openai:gpt-4o"}}, "llm is the same for all systems of a run"),
        ({"naive": {"judge": "batched"}}, "judges nothing: leave judge out"),
        ({"llm": {"topk": 9}}, "searches nothing: leave topk out"),
        ({"naife": {"topk": 3}}, "naife"),
        ({"naive": {"topk": 3}, "judge": {}}, "is no system"),
        ({"naive": 3}, "is no system"),
        ({"naive": {"rerank": "http://127.0.0.1:1/v1#a;b"}}, "no option may have a ;"),
        ("naive(topk=10", "naive(topk=10"),
        ("naive(topk)", "naive(topk)"),
        ("naive(topk=)", "is not NAME(KEY=VALUE"),
        ("naive(topk=1; topk=2)", "is not NAME(KEY=VALUE"),
        ("naive(topk=[1)", "is no YAML"),
    ],
)
def test_what_no_system_may_have_is_refused(given: object, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Experiment(dataset="x:y", systems=[given])
    assert said in str(caught.value)
