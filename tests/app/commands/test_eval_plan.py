"""How many questions a comparison takes, in Python and from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from judgetree import evaluation
from judgetree.evaluation.rows.store import RunStore
from judgetree.modules.errors import SettingsError
from tests.app.conftest import Cli
from tests.eval.dataset_files import write_lines
from tests.eval.run_rows import write_run


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    """Twenty questions, of which judge has 6 more right than naive."""
    rows = ({"id": f"q{each}", "question": f"{each}?", "golden_answers": ["right"]} for each in range(20))
    file = write_lines(tmp_path, *rows)
    return write_run(tmp_path / "pilot", {"naive": 5, "judge": 11}, dataset=f"flashrag:{file}")


def test_a_first_run_says_how_many_questions_a_comparison_takes(pilot: Path) -> None:
    (plan,) = evaluation.plan_questions(pilot, difference=0.1, comparisons=1)
    assert (plan.a, plan.b, plan.seen, plan.discordance) == ("judge", "naive", 20, 0.3)
    assert plan.questions == evaluation.plan_questions(difference=0.1, discordance=0.3)[0].questions == 249
    assert plan.questions_low is not None
    assert plan.questions_high is not None
    assert plan.questions_low < 249 < plan.questions_high
    (alone,) = evaluation.plan_questions(pilot, difference=0.1)
    assert (alone.comparisons, alone.questions) == (1, 249), "EM is the primary outcome"
    (among,) = evaluation.plan_questions(pilot, difference=0.1, comparisons=2)
    assert (among.comparisons, among.questions) == (2, 296)


def test_the_command_says_it_in_a_sentence(cli: Cli, pilot: Path) -> None:
    said = cli("eval", "plan", str(pilot), "--difference", "10", "--comparisons", "1").ok().out
    assert "judge and naive: exactly one is right on 30% of 20 questions (95 % interval 15% to 52%)" in said
    assert "So 249 questions show a difference of 10 points of EM" in said
    found = json.loads(cli("eval", "plan", "--discordance", "20", "--json").ok().out)
    assert [each["questions"] for each in found] == [168]
    assert "on 50% of the questions, 15 questions" in cli("eval", "plan", "--difference", "50").ok().out


def test_what_the_run_shows_is_told_as_it_is(tmp_path: Path, cli: Cli) -> None:
    """Systems that agree on all questions have a discordance of 0, whatever is to be shown."""
    rows = ({"id": f"q{each}", "question": f"{each}?", "golden_answers": ["right"]} for each in range(40))
    file = write_lines(tmp_path, *rows)
    run = write_run(tmp_path / "equal", {"naive": 20, "judge": 20}, dataset=f"flashrag:{file}")
    (plan,) = evaluation.plan_questions(run, difference=0.5, comparisons=1)
    assert (plan.discordance, plan.questions) == (0.0, 15)
    assert (
        "exactly one is right on 0% of 40 questions (95 % interval 0% to 9%)" in cli("eval", "plan", str(run)).ok().out
    )


def test_repeats_count_by_their_spread(tmp_path: Path, cli: Cli) -> None:
    rows = ({"id": f"q{each}", "question": f"{each}?", "golden_answers": ["right"]} for each in range(30))
    file = write_lines(tmp_path, *rows)
    run = write_run(tmp_path / "a", {"naive": 5, "judge": 19}, dataset=f"flashrag:{file}", repeats=2)
    store = RunStore(run)
    row = next(row for row in store.read_rows() if (row.system, row.repeat, row.prediction) == ("judge", 1, "right"))
    store.append(replace(row, prediction="wrong"))
    em, *_ = evaluation.compare_runs(run)
    (plan,) = evaluation.plan_questions(run, difference=em.paired.smallest_detectable or 1.0)
    assert (em.paired.test, plan.discordance) == ("permutation", None)
    assert plan.questions == pytest.approx(30, abs=1), "as many show what they would find"
    assert "by the spread of 30 questions with dialogues or repeats, " in cli("eval", "plan", str(run)).ok().out


@pytest.mark.parametrize("keys", [{}, {"difference": 10}, {"discordance": 2}, {"comparisons": 0}])
def test_values_that_are_no_shares_are_refused(keys: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="is not allowed"):
        evaluation.plan_questions(**{"difference": 0.1 if keys else 0.0, **keys})  # type: ignore[arg-type]
