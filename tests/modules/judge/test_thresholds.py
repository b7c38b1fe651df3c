"""Thresholds of the ``logprob`` judge: what ships, what a user calibrated, what is set, and which of them wins."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import SettingsError
from judgetree.modules.judge.factory import create_judge
from judgetree.modules.judge.fits import fits_file, read_fits
from judgetree.modules.judge.thresholds import (
    CALIBRATED,
    CALIBRATED_PROMPT,
    UNCALIBRATED,
    YES_NO_VERSION,
    Calibration,
    LogprobThresholds,
    find_thresholds,
    keep_calibration,
    read_calibrations,
    thresholds_file,
    thresholds_for,
)
from judgetree.modules.prompts.reading import load_prompts
from judgetree.modules.settings import Settings, load_settings

SHIPPED = "qwen2.5-coder-1.5b-instruct-q4_k_m"
FITTED = Calibration(
    thresholds=LogprobThresholds(needed=0.3, alone=0.7),
    dataset="hotpotqa:train.json",
    dataset_digest="d1",
    questions=100,
    passages=400,
    target_recall=0.93,
    auc=0.8,
    auc_low=0.7,
    auc_high=0.9,
    created="2026-01-01T00:00:00+00:00",
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(home=tmp_path / "home")


class SilentLLM:
    """Has a name and is never asked."""

    model = "org/Some-Model"

    async def complete(self, messages: Sequence[Message], *, meter: CallMeter, **_: Any) -> Completion:
        raise AssertionError("it was asked")


# --- what ships ---


def test_thresholds_of_a_model_are_found_by_its_name_or_file() -> None:
    for spelling in (SHIPPED, SHIPPED.upper(), f"{SHIPPED}.gguf", f"/models/{SHIPPED}.gguf"):
        assert thresholds_for(spelling) is CALIBRATED[SHIPPED]
    assert thresholds_for("gpt-4o-mini") is UNCALIBRATED
    assert UNCALIBRATED.alone is None


def test_calibration_that_ships_belongs_to_the_present_prompts() -> None:
    assert YES_NO_VERSION == CALIBRATED_PROMPT


@pytest.mark.parametrize(("needed", "alone"), [(-0.1, None), (1.1, None), (0.5, 2.0), (math.nan, None)])
def test_threshold_that_is_no_probability_is_refused(needed: float, alone: float | None) -> None:
    with pytest.raises(SettingsError, match="0 to 1"):
        LogprobThresholds(needed=needed, alone=alone)


# --- what a user calibrated ---


def test_kept_calibration_is_read_as_it_was(settings: Settings) -> None:
    file = thresholds_file(settings)
    assert read_calibrations(file) == {}
    keep_calibration(file, "/models/Some-Model.gguf", FITTED)
    assert read_calibrations(file) == {"some-model": {YES_NO_VERSION: FITTED}}
    assert find_thresholds("org/some-model", settings) == FITTED.thresholds
    assert find_thresholds("another", settings) is UNCALIBRATED


def test_calibration_wins_over_what_ships_and_a_later_one_over_an_earlier(settings: Settings) -> None:
    file = thresholds_file(settings)
    keep_calibration(file, SHIPPED, FITTED)
    keep_calibration(file, "another", FITTED)
    later = replace(FITTED, thresholds=LogprobThresholds(needed=0.4))
    keep_calibration(file, SHIPPED, later)
    assert find_thresholds(SHIPPED, settings) == later.thresholds
    assert find_thresholds("another", settings) == FITTED.thresholds


def test_calibration_of_other_prompts_is_logged(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    file = thresholds_file(settings)
    keep_calibration(file, SHIPPED, FITTED)
    file.write_text(file.read_text(encoding="utf-8").replace(YES_NO_VERSION, "00000000"), encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert find_thresholds(SHIPPED, settings) is CALIBRATED[SHIPPED]
    assert "of other prompts (00000000" in caplog.text
    keep_calibration(file, SHIPPED, FITTED)
    assert list(read_calibrations(file)[SHIPPED]) == ["00000000", YES_NO_VERSION]


@pytest.mark.parametrize(
    "content",
    ["{", "[]", "[" * 200_000, '{"m": {"v": {"thresholds": {"needed": 0.5}}}}'],
    ids=lambda content: content[:12],
)
def test_damaged_file_is_told_with_its_remedy(settings: Settings, content: str) -> None:
    file = thresholds_file(settings)
    keep_calibration(file, "m", FITTED)
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match="judgetree eval calibrate") as told:
        find_thresholds("m", settings)
    assert str(file) in str(told.value)


@pytest.mark.parametrize("content", ["{", "[]", "[" * 200_000, '{"fits": [1]}'], ids=lambda content: content[:12])
def test_a_damaged_file_of_fits_is_told_with_its_remedy(settings: Settings, content: str) -> None:
    file = fits_file(settings)
    file.parent.mkdir(parents=True)
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match="judgetree eval calibrate") as told:
        read_fits(file)
    assert str(file) in str(told.value)


def test_threshold_in_the_file_that_is_no_probability_names_the_file(settings: Settings) -> None:
    file = thresholds_file(settings)
    keep_calibration(file, "m", FITTED)
    file.write_text(file.read_text(encoding="utf-8").replace("0.3", "3.0"), encoding="utf-8")
    with pytest.raises(SettingsError, match=r"judge_thresholds\.json.*needed=3\.0"):
        find_thresholds("m", settings)


def test_calibrations_kept_at_once_are_all_kept(settings: Settings) -> None:
    names, start = [f"model-{number}" for number in range(8)], Barrier(8)

    def keep(name: str) -> None:
        start.wait(30)
        keep_calibration(thresholds_file(settings), name, FITTED)

    threads = [Thread(target=keep, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(read_calibrations(thresholds_file(settings))) == names


# --- what is set, and what a judge gets of it ---


def test_each_setting_wins_by_itself(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_calibration(thresholds_file(settings), "m", FITTED)
    monkeypatch.setenv("JUDGETREE_JUDGE_NEEDED_THRESHOLD", "0.55")
    assert find_thresholds("m", load_settings(home=settings.home)) == LogprobThresholds(needed=0.55, alone=0.7)
    monkeypatch.setenv("JUDGETREE_JUDGE_ALONE_THRESHOLD", "0.9")
    assert find_thresholds("m", load_settings(home=settings.home)) == LogprobThresholds(needed=0.55, alone=0.9)


@pytest.mark.parametrize("value", ["1.5", "-1", "nan", "high"])
def test_setting_that_is_no_probability_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("JUDGETREE_JUDGE_NEEDED_THRESHOLD", value)
    with pytest.raises(SettingsError, match="JUDGETREE_JUDGE_NEEDED_THRESHOLD"):
        load_settings()


def test_factory_gives_thresholds_and_fingerprints_them(settings: Settings) -> None:
    def fingerprint() -> dict[str, str]:
        return create_judge("logprob", SilentLLM(), spec="openai:x", settings=settings).fingerprint()

    before = fingerprint()
    assert (before["threshold_needed"], before["threshold_alone"]) == ("0.5", "")
    keep_calibration(thresholds_file(settings), SilentLLM.model, FITTED)
    assert fingerprint() == before | {"threshold_needed": "0.3", "threshold_alone": "0.7"}


def test_factory_without_settings_reads_the_environment(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_calibration(thresholds_file(settings), SilentLLM.model, FITTED)
    monkeypatch.setenv("JUDGETREE_HOME", str(settings.home))
    assert create_judge("logprob", SilentLLM(), spec="openai:x").fingerprint()["threshold_needed"] == "0.3"


# --- of prompts of one's own ---


@pytest.mark.parametrize("name", ["judge_needed", "judge_alone"])
def test_thresholds_count_only_for_the_prompts_that_they_were_fitted_with(settings: Settings, name: str) -> None:
    file, own = thresholds_file(settings), load_prompts({name: {"system": "Yes or no?"}})
    keep_calibration(file, "another", FITTED)
    assert thresholds_for(SHIPPED, own) is UNCALIBRATED
    assert find_thresholds("another", settings, own) is UNCALIBRATED
    own_fit = replace(FITTED, thresholds=LogprobThresholds(needed=0.2))
    keep_calibration(file, "another", own_fit, own)
    assert find_thresholds("another", settings, own) == own_fit.thresholds
    assert find_thresholds("another", settings) == FITTED.thresholds


def test_other_prompts_keep_the_thresholds(settings: Settings) -> None:
    own = load_prompts({"reader": {"system": "Answer."}, "judge_sub_question": {"system": "Ask."}})
    assert find_thresholds(SHIPPED, settings, own) is CALIBRATED[SHIPPED]
