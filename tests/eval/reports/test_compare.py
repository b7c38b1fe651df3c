"""Two systems on the same questions, from run directories on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from judgetree.evaluation.reports.compare import Comparison, compare_runs
from judgetree.evaluation.reports.report import load_report
from judgetree.evaluation.reports.verdicts import comparison_frame, comparisons_html
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.modules.calls.prices import ModelUsage
from judgetree.modules.errors import LoadingError, SettingsError
from tests.eval import run_rows
from tests.eval.dataset_files import write_lines

QUESTIONS = 12


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = (
        {"id": f"q{number}", "question": f"Question {number}?", "golden_answers": ["right"]}
        for number in range(QUESTIONS)
    )
    return write_lines(tmp_path, *rows)


def write_run(folder: Path, file: Path, right: dict[str, int], **experiment: object) -> Path:
    return run_rows.write_run(folder, right, dataset=f"flashrag:{file}", **experiment)


def test_systems_of_one_run_are_compared_question_by_question(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 0, "judge": QUESTIONS})
    em, f1, *_ = compare_runs(str(run))
    assert (em.a, em.b, em.paired.metric, f1.paired.metric) == ("judge", "naive", "em", "f1")
    assert (em.paired.test, em.paired.difference.mean, em.paired.a_better) == ("mcnemar", 1.0, QUESTIONS)
    assert em.paired.p_value == pytest.approx(2 * 0.5**QUESTIONS)
    assert em.paired.adjusted_p_value == em.paired.p_value, "the only one by the primary outcome"
    assert (em.family, f1.family, f1.paired.comparisons) == ("primary", "secondary", len([*_, f1]))
    assert f1.paired.adjusted_p_value == pytest.approx(f1.paired.p_value * f1.paired.comparisons)
    by_f1, *others = compare_runs(str(run), primary="f1")
    assert (by_f1.family, by_f1.paired.metric, by_f1.paired.comparisons) == ("primary", "f1", 1)
    assert {each.family for each in others} == {"secondary"}
    with pytest.raises(SettingsError, match="Did you mean 'seconds'"):
        compare_runs(str(run), primary="second")
    assert em.verdict.startswith("judge is better than naive by 100")


def pairs_of(comparisons: list[Comparison]) -> list[tuple[str, str]]:
    return [(each.a, each.b) for each in comparisons if each.paired.metric == "em"]


def test_systems_are_compared_with_each_other_only_when_asked(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"judge": 12, "llm": 6, "naive": 4})
    assert pairs_of(compare_runs(run)) == [("llm", "naive"), ("judge", "naive")], "in the order of systems"
    assert pairs_of(compare_runs(run, baseline="llm")) == [("naive", "llm"), ("judge", "llm")]
    every = compare_runs(run, baseline="all")
    assert pairs_of(every) == [("llm", "naive"), ("llm", "judge"), ("naive", "judge")]
    (judged,) = (each for each in compare_runs(run) if (each.a, each.paired.metric) == ("judge", "em"))
    (again,) = (each for each in every if (each.a, each.b, each.paired.metric) == ("naive", "judge", "em"))
    assert judged.paired.p_value == again.paired.p_value
    assert (judged.paired.adjusted_p_value or 1) < (again.paired.adjusted_p_value or 1), "corrected for fewer"
    with pytest.raises(SettingsError, match=r"'react' is not a system of the run\. Allowed: llm, naive, judge, or all"):
        compare_runs(run, baseline="react")


def test_baseline_of_the_experiment_is_taken_where_it_was_asked(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"llm": 3, "naive": 2, "judge": 3}, baseline="llm")
    assert pairs_of(compare_runs(run)) == [("naive", "llm"), ("judge", "llm")]
    other = write_run(tmp_path / "b", file, {"naive": 2, "judge": 3}, baseline="react")
    assert pairs_of(compare_runs(other)) == [("judge", "naive")]


def test_baseline_of_a_second_run_meets_every_system_of_the_first(tmp_path: Path, file: Path) -> None:
    a = write_run(tmp_path / "a", file, {"naive": 2, "judge": 12})
    b = write_run(tmp_path / "b", file, {"naive": 2, "judge": 2})
    assert pairs_of(compare_runs(a, b, baseline="naive")) == [
        (f"{a}:naive", f"{b}:naive"),
        (f"{a}:judge", f"{b}:naive"),
    ]


def test_questions_of_one_system_alone_are_left_out_and_counted(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 6, "judge": 7})
    rows = (run / "rows.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "rows.jsonl").write_text("".join(rows[:-3]), encoding="utf-8")
    em, *_ = compare_runs(run)
    assert (em.left_out, em.paired.difference.n) == (3, QUESTIONS - 3)
    assert em.verdict.endswith("3 questions are left out: only one of the two has a row of them that counts.")


def test_rows_damaged_by_an_outage_count_only_when_wanted(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 6, "judge": 6})
    store = RunStore(run)
    for row in [row for row in store.read_rows() if row.system == "judge"][:6]:
        number = int(row.question_id.removeprefix("q"))
        changes = {"status": "failed"} if number < 2 else {"damage": {"failed_verdicts": 2}}
        store.append(replace(row, prediction="wrong", attempt=1, **changes))  # type: ignore[arg-type]
    em, *_ = compare_runs(run)
    assert (em.paired.difference.n, em.paired.difference.mean) == (6, 0.0)
    assert em.verdict.endswith("Rows compared: complete; left out: 2 failed and 4 degraded of judge.")
    em, *_ = compare_runs(run, rows="answered")
    assert (em.paired.difference.n, em.paired.a_better) == (10, 0)
    assert em.verdict.endswith("Rows compared: answered; left out: 2 failed of judge; counted: 4 degraded of judge.")
    em, *_ = compare_runs(run, rows="all")
    assert em.paired.difference.n == QUESTIONS
    assert em.note == "Rows compared: all; counted: 2 failed and 4 degraded of judge."
    with pytest.raises(SettingsError, match=r"'none' is not allowed\. Allowed: complete, usable, answered, all"):
        compare_runs(run, rows="none")  # type: ignore[arg-type]


def test_systems_that_share_no_complete_rows_are_told_why(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 6, "judge": 6})
    for row in RunStore(run).read_rows():
        RunStore(run).append(replace(row, damage={"failed_reranks": 1}))
    with pytest.raises(SettingsError, match=r"12 degraded of judge, .*--retry incomplete.*--rows"):
        compare_runs(run)


def test_same_system_of_two_runs_is_compared(tmp_path: Path, file: Path) -> None:
    a = write_run(tmp_path / "a", file, {"naive": 2, "judge": 12}, max_rec_depth=1)
    b = write_run(tmp_path / "b", file, {"judge": 2}, max_rec_depth=3)
    em, *_ = compare_runs(a, b)
    assert (em.a, em.b, em.paired.a_better) == (f"{a}:judge", f"{b}:judge", 10)


def test_repeated_questions_count_once(tmp_path: Path, file: Path) -> None:
    em, *_ = compare_runs(write_run(tmp_path / "a", file, {"naive": 0, "judge": 12}, repeats=3))
    assert em.paired.difference.n == QUESTIONS


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"topk": 5}, r"topk: 3 and 5.*compare with --force, in Python with force=True\."),
        ({"retriever": "json:JSONDecoder"}, "retriever: None and 'json:JSONDecoder'"),
        ({"strategy": "refine"}, "'stuff' and 'refine'; refine_prompt: None and "),
    ],
)
def test_runs_that_differ_otherwise_are_refused_unless_forced(
    tmp_path: Path, file: Path, setting: dict[str, object], said: str
) -> None:
    a = write_run(tmp_path / "a", file, {"judge": 3})
    b = write_run(tmp_path / "b", file, {"judge": 5}, **setting)
    with pytest.raises(SettingsError, match=said):
        compare_runs(a, b)
    assert len(compare_runs(a, b, force=True)) > 1


@pytest.mark.parametrize(
    ("part", "then", "now", "said"),
    [
        ("index", {"collection": "a", "content_digest": "1"}, {"collection": "b", "content_digest": "2"}, "content_di"),
        (
            "search_graph",
            {"kind": "triples", "graph": "1"},
            {"kind": "triples", "graph": "2"},
            "search_graph graph: '1' ",
        ),
        ("retriever", {"kind": "Mine", "k": "3"}, {"kind": "Mine", "k": "4"}, "retriever k: '3' and '4'"),
        ("reader", {"model": "mine", "fields": "1"}, {"model": "mine", "fields": "2"}, "reader fields: '1' and '2'"),
    ],
)
def test_runs_over_other_content_are_refused_though_their_settings_are_equal(
    tmp_path: Path, file: Path, part: str, then: dict[str, str], now: dict[str, str], said: str
) -> None:
    a = write_run(tmp_path / "a", file, {"judge": 3})
    b = write_run(tmp_path / "b", file, {"judge": 5})
    write_opened(a, part, then)
    assert len(compare_runs(a, b)) > 1, "a run of a version that did not take it down"
    write_opened(b, part, now)
    with pytest.raises(SettingsError, match=said):
        compare_runs(a, b)
    assert len(compare_runs(a, b, force=True)) > 1
    write_opened(b, part, {**then, "collection": "b"} if part == "index" else then)
    assert len(compare_runs(a, b)) > 1


def write_opened(run: Path, part: str, facts: dict[str, str]) -> None:
    store = RunStore(run)
    store.write_manifest({**(store.read_manifest() or {}), part: facts})


def test_runs_need_only_those_prompts_in_common_that_both_use(tmp_path: Path, file: Path) -> None:
    a = write_run(tmp_path / "a", file, {"naive": 3}, systems=("naive",))
    b = write_run(tmp_path / "b", file, {"naive": 5}, systems=("llm", "naive"))
    assert len(compare_runs(a, b)) > 1
    manifest = json.loads((b / "manifest.json").read_text(encoding="utf-8"))
    manifest["identity"]["reader_prompt"] = "another"
    RunStore(b).write_manifest(manifest)
    with pytest.raises(SettingsError, match="reader_prompt"):
        compare_runs(a, b)


def test_one_system_alone_cannot_be_compared(tmp_path: Path, file: Path) -> None:
    with pytest.raises(SettingsError, match="holds one system"):
        compare_runs(write_run(tmp_path / "a", file, {"judge": 3}))


def test_replies_that_nobody_can_read_are_the_systems_own_failure(tmp_path: Path, file: Path) -> None:
    """Without its 3 wrong ones, whose verdicts were unusable, judge would look a quarter better."""
    run = write_run(tmp_path / "a", file, {"naive": 4, "judge": 9})
    store = RunStore(run)
    for row in store.read_rows():
        if row.system == "judge" and row.prediction == "wrong":
            store.append(replace(row, damage={"unusable_verdicts": 2}))
    em, *_ = compare_runs(run)
    assert (em.paired.difference.n, em.left_out) == (12, 0)
    assert em.paired.difference.mean == pytest.approx(5 / 12)
    assert em.usable is not None
    assert (em.usable.difference.n, em.usable.difference.mean) == (9, pytest.approx(5 / 9))
    assert "Without 3 answers of judge with replies that could not be used, it is +55.6 over 9 questions." in em.verdict
    other, *_ = compare_runs(run, rows="usable")
    assert (other.paired.difference.n, other.left_out, other.usable) == (9, 3, None)
    assert "3 questions are left out: only one of the two has a row of them that counts." in other.verdict
    assert "left out: 3 answers of judge with unusable replies" in other.verdict
    (told,) = (each for each in load_report(run).to_markdown().splitlines() if "could not be used" in each)
    assert told.startswith("Replies that could not be used: judge 3 answers (6 unusable verdicts).")


def test_a_judge_of_which_no_reply_could_be_used_is_told(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 4, "judge": 9})
    store = RunStore(run)
    for row in store.read_rows():
        if row.system == "judge":
            store.append(replace(row, damage={"unusable_verdicts": 1}))
    em, *_ = compare_runs(run)
    assert "Some replies in 12 answers of judge could not be used; too few questions are without such." in em.verdict
    assert (em.usable, em.usable_n) == (None, 0)
    with pytest.raises(SettingsError, match="replies that could not be used in 12 answers of judge"):
        compare_runs(run, rows="usable")


def test_of_repeats_those_with_usable_replies_count(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 4, "judge": 9}, repeats=2)
    store = RunStore(run)
    for row in store.read_rows():
        if (row.system, row.repeat) == ("judge", 1) and row.prediction == "wrong":
            store.append(replace(row, damage={"unusable_verdicts": 1}))
    em, *_ = compare_runs(run)
    assert em.usable is not None
    assert em.usable.difference == em.paired.difference, "the other repeat has the same answer"
    assert (
        "Without 3 answers of judge with replies that could not be used, it is +41.7 over 12 questions." in em.verdict
    )


def test_damage_from_outside_is_left_out_whatever_else_there_is(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 4, "judge": 9})
    store = RunStore(run)
    (row,) = (row for row in store.read_rows() if (row.system, row.question_id) == ("judge", "q3"))
    store.append(replace(row, damage={"unusable_verdicts": 1, "failed_verdicts": 1}))
    em, *_ = compare_runs(run)
    assert (em.paired.difference.n, em.left_out) == (11, 1)


def test_a_folder_that_does_not_exist_is_no_run(tmp_path: Path, file: Path) -> None:
    write_run(tmp_path / "pilot", file, {"naive": 4, "judge": 9})
    with pytest.raises(LoadingError, match=r"There is no run .*pilto\. Did you mean 'pilot'\?"):
        compare_runs(tmp_path / "pilto")
    with pytest.raises(LoadingError, match="There is no run"):
        compare_runs(tmp_path / "pilot", tmp_path / "gone")


def test_equivalence_is_shown_within_a_margin_that_the_questions_can_tell(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 6, "judge": 6, "llm": 5})
    apart, equal = compare_runs(run, margin=40)[:2]
    assert (apart.a, equal.a) == ("llm", "judge")
    found = equal.paired.equivalence
    assert found is not None
    assert (found.margin, found.confidence, found.is_shown) == (0.4, 0.95, True), "90 %, corrected for two comparisons"
    assert "They are equivalent within 40.0 points (95 % interval " in equal.verdict
    assert "two one-sided tests)." in equal.verdict
    few = compare_runs(run, margin=2)[1]
    assert "That they are equivalent was not shown within 2.0 points" in few.verdict
    assert all(each.paired.equivalence is None for each in compare_runs(run, margin=2) if each.family == "secondary")
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(SettingsError, match="margin"):
            compare_runs(run, margin=wrong)


def test_questions_that_share_a_fact_are_one_in_tests(tmp_path: Path) -> None:
    """Forty questions of four facts are four observations, so that no difference can be shown."""
    rows = [
        {"id": f"q{each}", "question": f"{each}?", "answer": "right", "cluster": f"fact {each % 4}"}
        for each in range(40)
    ]
    file = write_lines(tmp_path, *rows, name="own.jsonl")
    run = run_rows.write_run(tmp_path / "a", {"naive": 0, "judge": 40}, dataset=f"questions:{file}")
    em, *_ = compare_runs(run)
    assert (em.paired.test, em.paired.groups, em.paired.is_shown) == ("permutation", 4, False)
    assert "40 questions of 4 clusters" in em.verdict


def test_the_primary_outcome_may_be_any_column_with_numbers(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 0, "judge": QUESTIONS}, primary="cover_em")
    first, *others = compare_runs(run)
    assert (first.paired.metric, first.family, first.paired.is_shown) == ("cover_em", "primary", True)
    assert "em" in {each.paired.metric for each in others}
    assert "Primary outcome: cover EM, corrected for 1." in comparisons_html(load_report(run).comparisons, "cover_em")
    for wrong in ("evidnce", "question", "follow_up"):
        with pytest.raises(SettingsError, match="is no column with numbers"):
            Experiment(dataset="x:y", primary=wrong)
    assert Experiment(dataset="x:y", primary="score_mine").primary == "score_mine"


def test_a_primary_outcome_without_figures_is_told(tmp_path: Path, file: Path) -> None:
    run = write_run(tmp_path / "a", file, {"naive": 0, "judge": QUESTIONS}, primary="evidence")
    said = comparisons_html(load_report(run).comparisons, "evidence")
    assert "Primary outcome: evidence complete, of which no two systems have figures." in said
    with pytest.raises(SettingsError, match="share 0 questions that have evidence"):
        compare_runs(run)


def _with_calls(run: Path, calls: dict[str, int]) -> Path:
    store = RunStore(run)
    for place, row in enumerate(store.read_rows()):
        usage = ModelUsage(
            model="m", kind="chat", calls=calls[row.system] + place % 2, prompt_tokens=100, completion_tokens=1
        )
        store.append(replace(row, paid=(usage,)))
    return run


def test_a_gain_is_told_where_a_difference_was_shown(tmp_path: Path, file: Path) -> None:
    calls = {"naive": 1, "judge": 5}
    run = _with_calls(write_run(tmp_path / "a", file, {"naive": 2, "judge": QUESTIONS}), calls)
    em, *others = compare_runs(run)
    (gain,) = em.gains
    assert (gain.cost, gain.gain.mean) == ("llm_calls", pytest.approx(10 / 12 / 4))
    assert "A further call changes EM by +20.8 points (" in em.verdict
    assert all(each.gains == () for each in others)
    row = comparison_frame([em, *others]).iloc[0]
    assert row["gain_per_call"] == pytest.approx(10 / 12 / 4)
    assert row[["gain_per_1000_prompt_tokens", "gain_per_us_cent"]].isna().all(), "no difference of these was shown"


def test_no_gain_is_told_of_what_was_not_shown_or_is_a_cost_itself(tmp_path: Path, file: Path) -> None:
    """It said +1.8 (+0.4 to +3.8) a call behind "No difference was shown"."""
    few = _with_calls(write_run(tmp_path / "a", file, {"naive": 8, "judge": QUESTIONS}), {"naive": 1, "judge": 5})
    em, *_ = compare_runs(few)
    assert (em.paired.is_shown, em.gains) == (False, ())
    for primary in ("paid_llm_calls", "llm_calls"):
        calls, *_ = compare_runs(few, primary=primary)
        assert (calls.paired.is_shown, calls.gains) == (True, ())
    paid, *_ = compare_runs(few, primary="paid_llm_calls")
    assert "takes more calls paid than" in paid.verdict
