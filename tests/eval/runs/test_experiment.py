"""What an experiment file may say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.evaluation.runs.experiment import Experiment, experiment_keys, load_experiment
from judgetree.modules.errors import SettingsError
from judgetree.modules.retriever.own import check_beside


def written(folder: Path, text: str) -> Path:
    file = folder / "experiment.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_arguments_win_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "dataset: hotpotqa:a.json\nsystems: [naive, judge]\ntopk: 5\n")
    experiment = load_experiment(file, topk=2, limit=None)
    assert (experiment.dataset, experiment.systems, experiment.topk) == ("hotpotqa:a.json", ("naive", "judge"), 2)


def test_off_is_a_word(tmp_path: Path) -> None:
    experiment = load_experiment(written(tmp_path, "dataset: hotpotqa:a.json\nsharing: off\ncache: off\n"))
    assert (experiment.sharing, experiment.cache) == ("off", "off")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("dataset: x:y\ntopk: 0\n", "topk: Input should be greater than or equal to 1"),
        ("dataset: x:y\nfail_after: 1.5\n", "fail_after"),
        (
            "dataset: x:y\nspeed: 3\n",
            "speed: Extra inputs are not permitted.*Did you mean 'seed'.*Keys: .*dataset, columns, sep",
        ),
        (
            "dataset: x:y\nsystems: [rag]\n",
            "systems: .*Unknown system 'rag'. Did you mean 'crag'. Allowed: llm, naive",
        ),
        ("dataset: x:y\nstrategy: skim\n", "strategy: Input should be 'stuff', 'map_reduce', 'refine' or 'map_rerank'"),
        ("dataset: x:y\nsystems: naive\n", r"systems: 'naive' is no list\. Give one, such as \[naive\]"),
        ("dataset: x:y\nids: 7\nmetrics: em\n", r"ids: 7 is no list\. .*\[7\]; metrics: 'em' is no list\."),
        ("dataset: x:y\nlimit: three\n", r"limit: Input should be a valid integer, .* \(it is 'three'\)"),
        ("dataset: x:y\nsample: [2]\n", r"sample: Input should be a valid integer \(it is \[2\]\)"),
        ("topk: 3\n", r"dataset: Field required\."),
        ("dataset: x:y\nlimit: 2\nsample: 2\n", "sample: .*leave out either"),
        ("- a\n- b\n", "is not a mapping"),
        ("dataset: [\n", "cannot be read"),
    ],
)
def test_file_that_is_not_usable_says_why(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(SettingsError, match=f"(?s)experiment.yaml.*{named}"):
        load_experiment(written(tmp_path, text))


def test_a_single_object_is_no_list() -> None:
    """The message was "Input should be a valid tuple", as for a single name."""
    with pytest.raises(SettingsError, match=r"systems: 'json:loads' is no list\. Give one, such as \[json:loads\]"):
        load_experiment(dataset="x:y", systems=json.loads)


def test_a_value_that_is_shown_has_no_secrets() -> None:
    with pytest.raises(SettingsError, match=r"limit: .*\(it is 'http://.*host/v1'\)") as refused:
        load_experiment(dataset="x:y", limit="http://ada:lovelace@host/v1")
    assert "lovelace" not in str(refused.value)


def test_keys_of_the_built_in_search_are_refused_beside_a_retriever_of_one_s_own() -> None:
    with pytest.raises(SettingsError, match=r"search_type of the built-in search .* beside .* 'a:B': leave it"):
        check_beside("a:B", load_experiment(dataset="x:y", retriever="a:B", search_type="dense"))
    with pytest.raises(SettingsError, match=r"ranker_type, ranker_params of .*leave them out"):
        check_beside("a:B", load_experiment(dataset="x:y", retriever="a:B", ranker_type="weighted", ranker_params={}))


def test_a_ranker_of_evidence_wants_a_limit(tmp_path: Path) -> None:
    keys = "dataset: hotpotqa:x\nevidence_ranker: log_det\n"
    with pytest.raises(SettingsError, match=r"evidence_ranker.*give evidence_tokens too"):
        load_experiment(written(tmp_path, keys))
    assert load_experiment(written(tmp_path, f"evidence_tokens: 500\n{keys}")).evidence_ranker == "log_det"


def test_a_system_that_is_named_twice_is_asked_once() -> None:
    assert load_experiment(dataset="x:y", systems=["naive", "judge", "naive"]).systems == ("naive", "judge")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.yaml cannot be read"):
        load_experiment(tmp_path / "nowhere.yaml")


def test_every_key_is_documented() -> None:
    assert all(field.description for field in Experiment.model_fields.values())


def test_identity_leaves_out_what_a_run_may_go_on_with() -> None:
    one = Experiment(dataset="hotpotqa:a.json", limit=3, concurrency=2)
    assert one.identity() == one.model_copy(update={"limit": 9, "concurrency": 4, "repeats": 2}).identity()
    assert one.identity() != one.model_copy(update={"topk": 4}).identity()
    assert one.identity() != one.model_copy(update={"strategy": "refine"}).identity()


def test_password_of_a_model_is_not_written_down() -> None:
    experiment = Experiment(dataset="hotpotqa:a.json", llm="http://ada:lovelace@127.0.0.1/v1#m")
    assert "lovelace" not in experiment.model_dump_json()


def test_none_takes_a_key_of_the_file_out(tmp_path: Path) -> None:
    """`--set match_budget=null` was ignored, and the pilot was paid."""
    file = tmp_path / "keys.yaml"
    file.write_text("dataset: hotpotqa:dev.json\nmatch_budget: judge\nlimit: 3\n", encoding="utf-8")
    assert experiment_keys(file, match_budget=None) == {"dataset": "hotpotqa:dev.json", "limit": 3}
