"""What a run directory is held to when its run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.evaluation.datasets.questions import Dataset, DialogueTurn, EvalQuestion
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.batch_run import with_experiment
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.manifest import (
    accepted_changes,
    check_run,
    identity_of,
    manifest_of,
    with_prompts,
)
from judgetree.evaluation.runs.rerun import load_rerun
from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import load_settings

SETTINGS = load_settings(llm="http://127.0.0.1:1/v1#m")
ALONE = Dataset(name="set", questions=(EvalQuestion(id="q", question="Who?", answers=("Ada",)),))
TALK = Dataset(
    name="set",
    questions=(EvalQuestion(id="q", question="Who?", answers=(), turn=DialogueTurn(dialogue_id="d", number=1)),),
)
JUDGES = {"judge_prompt", "logprob_judge_prompt"}


def identity(*systems: str, dataset: Dataset = ALONE, **keys: object) -> dict[str, object]:
    return identity_of(Experiment.model_validate({"dataset": "x:y", "systems": systems, **keys}), dataset, SETTINGS)


def prompts(known: dict[str, object]) -> set[str]:
    return {name for name in known if name.endswith("_prompt")}


@pytest.mark.parametrize(
    ("systems", "keys", "expected"),
    [
        (("llm",), {}, {"closed_book_prompt"}),
        (("naive",), {}, {"reader_prompt"}),
        (("llm", "judge"), {}, {"closed_book_prompt", "reader_prompt", *JUDGES}),
        (("ircot",), {"strategy": "refine"}, {"reader_prompt", "ircot_prompt", "refine_prompt"}),
        (("naive",), {"dataset": TALK}, {"reader_prompt", "conversation_prompt"}),
    ],
)
def test_identity_holds_prompts_of_its_systems(
    systems: tuple[str, ...], keys: dict[str, object], expected: set[str]
) -> None:
    dataset = keys.pop("dataset", ALONE)
    assert isinstance(dataset, Dataset)
    assert prompts(identity(*systems, dataset=dataset, **keys)) == expected


def test_run_goes_on_whatever_prompts_of_other_systems_its_manifest_names() -> None:
    wanted = identity("naive")
    for stored in (
        {**wanted, "judge_prompt": "old", "self_ask_prompt": "old", "gone_prompt": "old"},
        {name: value for name, value in wanted.items() if name not in ("history", "conversation")},
    ):
        check_run({"identity": stored}, wanted, where="here")


def test_prompts_of_new_systems_are_taken_down_and_held_from_then_on() -> None:
    manifest = {"identity": identity("naive")}
    check_run(manifest, identity("naive", "judge"), where="here")
    grown = with_prompts(manifest, identity("naive", "judge"))
    assert prompts(dict(grown["identity"])) == {"reader_prompt", *JUDGES}  # type: ignore[call-overload]
    assert with_prompts(grown, identity("naive")) is grown
    other = {**identity("judge"), "judge_prompt": "new"}
    with pytest.raises(SettingsError, match=r"judge_prompt: .* now"):
        check_run(grown, other, where="here")


def test_accepted_changes_of_a_system_of_ones_own_are_taken_down() -> None:
    manifest = {"identity": {**identity("naive"), "mine:build source": "a"}}
    assert accepted_changes(with_prompts(manifest, {"other:build source": "b"})) == []
    changed = with_prompts(manifest, {"mine:build source": "b"})
    again = with_prompts(changed, {"mine:build source": "c"})
    assert accepted_changes(again) == ["mine:build source: a then, b now", "mine:build source: b then, c now"]


def test_temperature_is_that_of_the_run_that_is_done_again(tmp_path: Path) -> None:
    then = SETTINGS.model_copy(update={"temperature": 0.4})
    RunStore(tmp_path).write_manifest(manifest_of(Experiment(dataset="x:y"), TALK, then))
    assert load_rerun(tmp_path, settings=SETTINGS).experiment.temperature == 0.4
    assert load_rerun(tmp_path, settings=SETTINGS, temperature=0.0).experiment.temperature == 0.0


def test_thinking_is_that_of_the_run_that_is_done_again(tmp_path: Path) -> None:
    on = SETTINGS.model_copy(update={"thinking": True})
    for name, then, now in (("as its endpoint does", SETTINGS, on), ("on", on, SETTINGS)):
        (tmp_path / name).mkdir()
        RunStore(tmp_path / name).write_manifest(manifest_of(Experiment(dataset="x:y"), TALK, then))
        again = load_rerun(tmp_path / name, settings=now)
        assert with_experiment(again.settings, again.experiment).thinking is then.thinking, name
    assert load_rerun(tmp_path / "on", settings=SETTINGS, thinking=False).experiment.thinking is False


def test_a_rerun_keeps_the_limits_of_conversation_prompts(tmp_path: Path) -> None:
    then = SETTINGS.model_copy(update={"max_recent_turns": 4, "llm_max_tokens": 999})
    RunStore(tmp_path).write_manifest(manifest_of(Experiment(dataset="x:y"), TALK, then))
    rerun = load_rerun(tmp_path, settings=SETTINGS)
    assert (rerun.settings.max_recent_turns, rerun.settings.llm_max_tokens) == (4, 999)
    assert identity_of(rerun.experiment, TALK, rerun.settings)["max_recent_turns"] == 4
    assert "max_recent_turns" not in identity("naive")
