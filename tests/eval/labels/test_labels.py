"""Labels by hand: which passages are drawn, that none is lost, and what annotators agree on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.labels.agreement import agreement_of, agreements
from judgetree.evaluation.labels.judgements import judgements_of, read_judgements, weighed_judgements
from judgetree.evaluation.labels.labelling import Labelling, LabelPlan
from judgetree.evaluation.labels.passages import draw_passages
from judgetree.evaluation.labels.store import FoundPassage, Label, LabelStore
from judgetree.evaluation.labels.summary import summary_lines
from judgetree.graphs.tree.nodes import VerdictLabel
from judgetree.modules.errors import LoadingError, SettingsError
from judgetree.modules.judge.contract import Score
from tests.eval.run_writer import ATTACK, RunWriter


def passage(number: int, verdict: VerdictLabel = "1", *, question: int | None = None) -> FoundPassage:
    asked = f"Question {number if question is None else question}?"
    return FoundPassage(
        query=asked,
        text=f"Text {number}.",
        source="a.md",
        chunk_id=f"c{number}",
        question_id=asked,
        question=asked,
        system="judge",
        thread_id="t",
        node="t",
        verdict=verdict,
    )


def label(number: int, annotator: str, score: Score | None, **more: object) -> Label:
    label = Label(annotator=annotator, score=score, created="2026-01-01T00:00:00+00:00", passage=passage(number))
    return replace(label, **more)  # type: ignore[arg-type]


# --- which passages ---


def test_as_many_are_drawn_of_each_verdict_as_there_are() -> None:
    verdicts: list[VerdictLabel] = ["2"] * 3 + ["1"] * 30 + ["0"] * 300 + ["unknown"] * 30
    found = [passage(number, verdict) for number, verdict in enumerate(verdicts)]
    drawn = draw_passages(found, 40)
    counts = Counter(each.verdict for each in drawn)
    assert counts["2"] == 3
    assert sorted(counts[verdict] for verdict in ("1", "0", "unknown")) == [12, 12, 13]


@given(
    st.lists(st.sampled_from(["2", "1", "0", "unknown", "pending"]), max_size=40),
    st.integers(1, 50),
    st.integers(0, 3),
    st.randoms(),
)
def test_a_larger_draw_keeps_a_smaller_one_and_order_plays_no_part(
    verdicts: Sequence[VerdictLabel], count: int, seed: int, chance: object
) -> None:
    found = [passage(number, verdict, question=number // 3) for number, verdict in enumerate(verdicts)]
    drawn = draw_passages(found, count, seed=seed)
    assert len(drawn) == min(count, len(found))
    assert set(drawn) <= set(draw_passages(found, count + 5, seed=seed))
    chance.shuffle(found)  # type: ignore[attr-defined]
    assert draw_passages(found, count, seed=seed) == drawn
    questions = [each.question_id for each in drawn]
    starts = [one for one, before in zip(questions, [None, *questions], strict=False) if one != before]
    assert len(starts) == len(set(starts)), "the passages of a question follow each other"


def test_seeds_draw_differently() -> None:
    found = [passage(number) for number in range(50)]
    assert draw_passages(found, 10, seed=1) != draw_passages(found, 10, seed=2)


# --- one annotator's work ---


@pytest.fixture
def run(tmp_path: Path) -> Path:
    RunWriter(tmp_path).fill()
    return tmp_path


def test_passages_are_those_that_were_judged_and_none_is_shown_twice(run: Path) -> None:
    work = Labelling(run, "ada")
    assert sorted(each.verdict for each in work.passages) == ["0", "1", "2", "2"]
    assert {each.system for each in work.passages} == {"judge"}
    assert {each.query for each in work.passages} >= {"Where is the weir?", "磨坊在哪里?"}
    assert {each.verdict for each in Labelling(run, "ada", LabelPlan(systems=("naive",))).passages} == {"pending"}
    both = Labelling(run, "ada", LabelPlan(systems=("judge", "naive"))).passages
    assert len({each.id for each in both}) == len(both) == 4


def test_what_is_saved_is_not_left_and_the_newest_counts(run: Path) -> None:
    work = Labelling(run, "ada")
    first = work.due()[0]
    work.save(first.id, 1, note=f" {ATTACK} ", seconds=2.5)
    again = Labelling(run, "ada")
    assert first not in again.due()
    assert again.mine()[first.id].note == ATTACK
    again.save(first.id, None)
    assert work.mine()[first.id].score is None
    assert len(work.due()) == 3
    assert len(Labelling(run, "bo").due()) == 4


def test_verdict_and_gold_are_told_of_each_passage(run: Path) -> None:
    work = Labelling(run, "ada")
    told = {each.query: work.reveal(each.id) for each in work.passages}
    assert {reveal.gold for reveal in told.values()} == {"fact"}
    assert told["Where is the weir?"].verdict == "2"
    (run / "rows.json").unlink()
    assert {Labelling(run, "ada").reveal(each.id).gold for each in work.passages} == {None}


def test_beyond_the_overlap_each_passage_goes_to_one(run: Path) -> None:
    plan = LabelPlan(overlap=1)
    ada, bo = Labelling(run, "ada", plan), Labelling(run, "bo", plan)
    for one in ada.passages[:2]:
        ada.save(one.id, 1)
    assert bo.due() == [each for each in bo.passages if each != ada.passages[1]]
    assert bo.due()[0] == ada.passages[0], "which all label"


def test_annotators_beside_each_other_label_different_passages(run: Path) -> None:
    """What is due is read again after each label, as the page does; a common order would let them meet at each."""
    works = [Labelling(run, name, LabelPlan(overlap=0)) for name in ("ada", "bo", "cy")]
    assert len({tuple(each.id for each in work.passages) for work in works}) > 1
    assert {frozenset(work.passages) for work in works} == {frozenset(works[0].passages)}
    whole = [Labelling(run, name).passages for name in ("ada", "bo")]
    assert whole[0] == whole[1], "what all label comes in one order"


@pytest.mark.parametrize(
    ("annotator", "plan", "said"),
    [
        (" ", {}, "--annotator"),
        ("a\x00", {}, "annotator's name"),
        ("ada", {"count": 0}, "count=0"),
        ("ada", {"overlap": -1}, "overlap=-1"),
        ("ada", {"systems": ("react",)}, "It has: naive, judge"),
    ],
)
def test_what_cannot_be_used_is_refused(run: Path, annotator: str, plan: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Labelling(run, annotator, LabelPlan(**plan))  # type: ignore[arg-type]


def test_a_folder_without_a_run_and_a_strange_passage_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match="judgetree eval run --out"):
        Labelling(tmp_path / "none", "ada")
    with pytest.raises(SettingsError, match="none of the 4 drawn"):
        Labelling(run, "ada").save("0" * 16, 1)
    with pytest.raises(SettingsError, match="too long"):
        Labelling(run, "ada").save(Labelling(run, "ada").due()[0].id, 1, note="x" * 5_000)


# --- the file ---

_APPENDING = """
import sys
from dataclasses import replace
from pathlib import Path
from judgetree.evaluation.labels.store import LabelStore
store = LabelStore(Path(sys.argv[1]))
[first] = store.read()
print("ready", flush=True)
sys.stdin.readline()
for number in range(30):
    store.append(replace(first, annotator=sys.argv[2], note=str(number)))
"""


@pytest.mark.slow
def test_annotators_at_once_lose_nothing(tmp_path: Path) -> None:
    store = LabelStore(tmp_path)
    store.append(label(1, "ada", 1))
    command = [sys.executable, "-c", _APPENDING, str(tmp_path)]
    with (
        subprocess.Popen([*command, "bo"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bo,
        subprocess.Popen([*command, "cy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cy,
    ):
        for each in (bo, cy):
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in (bo, cy):
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
    assert Counter(each.annotator for each in store.read()) == {"ada": 1, "bo": 30, "cy": 30}


def test_a_line_cut_off_by_a_kill_is_dropped_and_the_next_label_is_whole(tmp_path: Path) -> None:
    store = LabelStore(tmp_path)
    store.append(label(1, "ada", 1))
    with store.file.open("ab") as file:
        file.write(b'{"format":"judgetree-labels/1","annotator":"b')
    assert len(store.read()) == 1
    store.append(label(2, "bo", 0))
    assert [each.annotator for each in store.read()] == ["ada", "bo"]


@pytest.mark.parametrize(
    ("line", "said"),
    [("{}", "has no format"), ("nonsense", "damaged"), ('{"format":"judgetree-labels/1","annotator":1}', "damaged")],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    store = LabelStore(tmp_path)
    store.file.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(LoadingError, match=f"line 1.*{said}"):
        store.read()


def test_the_file_reads_as_plain_json(tmp_path: Path) -> None:
    store = LabelStore(tmp_path)
    store.append(label(1, "ada", 2, note="磨"))
    document = json.loads(store.file.read_text(encoding="utf-8"))
    assert (document["format"], document["score"], document["note"]) == ("judgetree-labels/1", 2, "磨")
    assert document["passage"]["query"] == "Question 1?"
    assert "id" not in document["passage"]


# --- what annotators agree on ---


def test_most_annotators_settle_a_passage_and_ties_are_disputed(tmp_path: Path) -> None:
    given = [
        *(label(1, who, score) for who, score in (("ada", 1), ("bo", 1), ("cy", 0))),
        *(label(2, who, score) for who, score in (("ada", 1), ("bo", 0))),
        label(3, "ada", None),
        *(label(4, who, score) for who, score in (("ada", 2), ("bo", None))),
        label(5, "ada", 0),
        label(5, "ada", 2),
    ]
    for each in given:
        LabelStore(tmp_path).append(each)
    found = read_judgements(tmp_path)
    assert [(each.passage.text, each.score, each.annotators) for each in found.settled] == [
        ("Text 1.", 1, 2),
        ("Text 4.", 2, 1),
        ("Text 5.", 2, 1),
    ]
    assert [each.text for each in found.disputed] == ["Text 2."]
    assert [each.text for each in found.undecided] == ["Text 3."]
    lines = list(summary_lines(LabelStore(tmp_path).read()))
    assert "3 passages settled, 1 disputed, 1 of which nobody could tell" in lines
    assert any(line.startswith("1 label replaced later") for line in lines)


def test_kappa_is_that_of_cohen() -> None:
    # His table: 25 of 50 yes by one, 30 by the other, 20 both yes, 15 both no: observed .70, by chance .50.
    pairs = [*[("q", 1, 1)] * 20, *[("q", 1, 0)] * 5, *[("q", 0, 1)] * 10, *[("q", 0, 0)] * 15]
    told = agreement_of("ada", "bo", pairs)  # type: ignore[arg-type]
    assert told.kappa == pytest.approx(0.4)
    assert (told.same, told.passages, told.questions, told.low) == (0.7, 50, 1, None)
    apart = agreement_of("ada", "bo", [(str(at), *pair[1:]) for at, pair in enumerate(pairs)])  # type: ignore[arg-type]
    assert apart.low is not None
    assert apart.high is not None
    assert apart.low < 0.4 < apart.high


def test_agreement_is_told_of_each_pair_with_passages_in_common() -> None:
    given = [label(1, "ada", 1), label(2, "ada", 1), label(1, "bo", 1), label(2, "bo", None), label(3, "cy", 1)]
    [told] = agreements(given)
    assert (told.one, told.two, told.passages, told.kappa) == ("ada", "bo", 1, None)
    assert judgements_of([]).settled == ()
    assert list(summary_lines([])) == ["No labels yet."]


def test_a_label_weighs_what_its_verdict_has_in_the_run(run: Path) -> None:
    work = Labelling(run, "ada")
    assert weighed_judgements(run) == []
    for passage in work.passages:
        if passage.query != "Where is the weir?":
            work.save(passage.id, 1)
    weights = {each.passage.verdict: each.weight for each in weighed_judgements(run)}
    assert weights == {"2": 2.0, "1": 1.0, "0": 1.0}, "one of two passages with verdict 2 is labelled"
