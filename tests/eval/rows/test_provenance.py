"""What a run was made of, in the words that all of its pages share."""

from __future__ import annotations

import pytest

from judgetree.evaluation.rows.provenance import provenance_of, provenance_of_all, provenance_words

MANIFEST = {
    "created": "2026-11-28T13:25:29+00:00",
    "experiment": {"dataset": "hotpotqa:dev.json", "limit": None, "sample": None, "seed": 7},
    "identity": {
        "dataset_digest": "938edad30a3b3077ca24",
        "llm": "openai:gpt-4o-mini",
        "judge_llm": "openai:gpt-4o-mini",
        "judge": "generated",
        "embeddings": "local:minilm",
        "search_type": "hybrid",
        "retriever": None,
        "topk": 3,
        "thinking": None,
        "temperature": 0.0,
    },
    "judge": {"kind": "generated"},
    "code": [{"judgetree": "0.1.0", "code_digest": "edb04ab66aec345b"}],
}


def _changed(part: str, **keys: object) -> dict[str, object]:
    return {**MANIFEST, part: {**MANIFEST[part], **keys}}  # type: ignore[dict-item]


def test_data_set_models_search_version_and_command_are_named() -> None:
    facts = provenance_of(MANIFEST, ["naive", "judge"], asked=500, there=500)
    assert facts["data set"] == "hotpotqa:dev.json (digest 938edad30a3b)"
    assert facts["judgetree"] == "0.1.0 (code edb04ab66aec)"
    assert (facts["temperature"], facts["topk"], facts["embeddings"]) == ("0.0", "3", "local:minilm")
    assert facts["again"].startswith("judgetree eval run --from manifest.json")
    assert {"judge model", "thinking", "retriever"}.isdisjoint(facts), (
        "what is not there, or is the reader's, is not said"
    )
    assert provenance_words(facts).startswith(
        "data set: hotpotqa:dev.json (digest 938edad30a3b); questions: 500 of 500; "
    )


@pytest.mark.parametrize(
    ("keys", "words"),
    [({}, "80 of 500"), ({"limit": 80}, "the first 80 of 500"), ({"sample": 80}, "80 of 500, drawn by seed 7")],
)
def test_a_part_of_the_questions_is_told(keys: dict[str, object], words: str) -> None:
    assert provenance_of(_changed("experiment", **keys), ["naive"], asked=80, there=500)["questions"] == words


def test_a_judge_that_sees_gold_is_told() -> None:
    manifest = _changed("identity", judge="noisy:auc=.8") | {"judge": {"kind": "noisy"}}
    assert "sees the gold documents" in provenance_of(manifest, ["judge"], asked=1, there=1)["judge"]
    assert "judge" not in provenance_of(manifest, ["naive"], asked=1, there=1), "no system judged"
    variant = "judge(judge=noisy:batched=true)"
    mixed = {**MANIFEST, f"judge of {variant}": {"kind": "noisy"}}
    said = provenance_of(mixed, ["naive", variant, "judge"], asked=1, there=1)["judge"]
    assert said == "noisy:batched=true (simulated: sees the gold documents) and generated"


def test_what_runs_do_not_have_in_common_varies() -> None:
    one = provenance_of(MANIFEST, ["judge"], asked=9, there=9)
    other = provenance_of(_changed("identity", topk=5, retriever="mine:Own"), ["judge"], asked=9, there=9)
    both = provenance_of_all([one, other])
    assert (both["topk"], both["embeddings"], both["retriever"], both["model"]) == (
        *("varies", "varies", "varies"),
        "openai:gpt-4o-mini",
    )


def test_a_name_breaks_out_of_no_line() -> None:
    facts = provenance_of(_changed("experiment", dataset="hotpotqa:q\x1b[31m\n# H1\r.json"), [], asked=1, there=1)
    said = provenance_words(facts)
    assert "\x1b" not in said
    assert len(said.splitlines()) == 1
