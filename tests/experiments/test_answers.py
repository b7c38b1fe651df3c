"""The page of answers, computed again from the rows that are kept, without our statistics."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median

import httpx
import pandas as pd
import pytest

from experiments.answers import CONTEXT_TOKENS, STAGE_B, kept_answers, read_answers, start_with_room, systems_of
from experiments.answers_page import is_whole, known_before
from experiments.batches import kept_file
from experiments.kept import read_kept
from experiments.outcomes import outcomes
from experiments.questions import ids_of
from experiments.record import STAGE_A
from judgetree.modules.llm.local import open_local_model, stop_local_models
from judgetree.modules.settings import load_settings
from tests.experiments.told_answers import check_told

PAGES = Path(__file__).parents[2] / "docs" / "experiments"
PAGE = (PAGES / "answers.md").read_text(encoding="utf-8")
SYSTEMS = list(systems_of(1))
QUESTIONS = {each for name in STAGE_B for each in ids_of(name)}
FILE = kept_answers("local:")


def rows() -> list[dict[str, str]]:
    """The rows that are kept; none before the first."""
    if not FILE.exists():
        return []
    with FILE.open(encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


ROWS = rows()


def test_each_question_is_answered_once_by_each_system() -> None:
    answered = [(each["id"], each["system"]) for each in ROWS]

    assert len(answered) == len(set(answered))
    assert {each["id"] for each in ROWS} <= QUESTIONS
    assert {each["system"] for each in ROWS} <= {*SYSTEMS}
    count = len({each["id"] for each in ROWS})
    is_told = is_whole(read_answers(FILE))
    assert (f"to {count} questions" if is_told else f"Not known yet: {count} of the {len(QUESTIONS)}") in PAGE


def test_the_page_tells_all_means_counts_and_differences_once_it_is_whole() -> None:
    if is_whole(read_answers(FILE)):
        check_told(PAGE, ROWS)
    else:
        assert "| judge |" not in PAGE


def test_stage_a_on_the_same_questions_is_that_of_its_page() -> None:
    with (PAGES / "evidence.csv").open(encoding="utf-8") as opened:
        complete = {(each["id"], each["system"]): each["complete"] == "True" for each in csv.DictReader(opened)}
    stage_a = outcomes(each for name in STAGE_A for each in read_kept(kept_file(name, "local:")))
    said = known_before(stage_a, pd.DataFrame({"id": sorted(QUESTIONS)}))
    for ids in (QUESTIONS, *(set(ids_of(name)) for name in STAGE_B), {each for each, _ in complete}):
        judge, plain = (sum(complete[each, name] for each in ids) for name in ("judge", "naive, as many tokens"))
        told = f"{judge} and {plain} of {len(ids)}: {100 * (judge - plain) / len(ids):+.1f} ("
        assert told in said


def test_what_was_seen_beside_the_rows_agrees_with_them() -> None:
    seconds = [float(each["seconds"]) for each in ROWS if each["system"] == "judge"]
    assert f"median is {median(seconds[:45]):.0f} in the first 45 questions, and {median(seconds[45:]):.0f} in" in PAGE
    answers = {(each["id"], each["system"]): each["answer"] for each in ROWS}
    assert all(answers[each, "ircot, 3 rounds"] == answers[each, "naive, 3 passages"] for each in QUESTIONS)


@pytest.mark.local_model
def test_a_model_that_stage_a_has_started_gets_room_for_all_passages(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path / "home", llm="local:")
    try:
        open_local_model("", settings.home)
        start_with_room(settings)
        model = open_local_model("", settings.home)
        address = f"{model.base_url.removesuffix('/v1')}/props"
        found = httpx.get(address, headers={"Authorization": f"Bearer {model.api_key}"}, timeout=60).json()
        assert found["default_generation_settings"]["n_ctx"] == CONTEXT_TOKENS
    finally:
        stop_local_models()
