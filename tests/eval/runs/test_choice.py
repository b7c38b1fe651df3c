from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.runs.experiment import Experiment, load_experiment
from judgetree.evaluation.runs.jobs import choose_questions, draw
from judgetree.modules.addresses import Address
from judgetree.modules.config.retrieval import RankerType
from judgetree.modules.retriever.reordering import REORDERING
from judgetree.modules.retriever.rerank import RANKERS
from tests.eval.dataset_files import hotpot_row, write_lines, write_list

questions = st.lists(
    st.builds(
        EvalQuestion,
        id=st.text(),
        question=st.just("?"),
        answers=st.just(()),
        type=st.sampled_from(("bridge", "comparison")),
        hops=st.sampled_from((2, 4, None)),
    ),
    unique_by=lambda question: question.id,
    max_size=20,
)


@given(questions, st.integers(1, 25), st.integers(0, 5))
def test_draw_is_of_its_size_and_grows_by_others(asked: list[EvalQuestion], size: int, seed: int) -> None:
    drawn = draw(asked, size, seed=seed)
    assert len(drawn) == min(size, len(asked))
    assert set(drawn) <= set(asked)
    assert set(drawn) <= set(draw(asked, size + 1, seed=seed))
    assert drawn == draw(reversed(asked), size, seed=seed)


def test_seeds_draw_differently_and_each_kind_has_its_share() -> None:
    kinds = {**dict.fromkeys(range(60), 2), **dict.fromkeys(range(60, 90), 3), **dict.fromkeys(range(90, 100), 4)}
    asked = [EvalQuestion(id=f"q{each}", question="?", answers=(), hops=hops) for each, hops in kinds.items()]
    assert draw(asked, 10, seed=0) != draw(asked, 10, seed=1)
    for size in range(1, 101):
        counts = Counter(question.hops for question in draw(asked, size, seed=0))
        assert all(abs(counts[hops] - size * share) <= 1 for hops, share in ((2, 0.6), (3, 0.3), (4, 0.1)))


def test_small_kinds_are_drawn_as_often_as_they_are_there() -> None:
    """With one place for all kinds of a size, kinds of one question came only once half the set was drawn."""
    asked = [EvalQuestion(id=f"q{each}", question="?", answers=(), type="main") for each in range(50)]
    asked += [EvalQuestion(id=f"r{each}", question="?", answers=(), type=f"rare {each}") for each in range(50)]
    rare = [sum(each.type != "main" for each in draw(asked, 20, seed=seed)) for seed in range(50)]
    assert 8 < sum(rare) / len(rare) < 12


def test_sample_keeps_file_order_and_the_whole_corpus(tmp_path: Path) -> None:
    spec = f"hotpotqa:{write_list(tmp_path, *(hotpot_row(number) for number in range(9)))}"
    whole = load_dataset(spec)
    sampled = choose_questions(whole, Experiment(dataset=spec, sample=4, seed=3))
    order = [question.id for question in whole.questions]
    assert [order.index(question.id) for question in sampled.questions] == sorted(
        order.index(question.id) for question in sampled.questions
    )
    assert (len(sampled.questions), sampled.documents) == (4, whole.documents)
    among = choose_questions(whole, Experiment(dataset=spec, sample=1, ids=("q3", "q4")))
    assert {question.id for question in among.questions} < {"q3", "q4"}


@pytest.fixture
def talks(tmp_path: Path) -> str:
    """Three dialogues of four turns each."""
    rows = [
        {"dialogue_id": f"d{dialogue}", "turn": turn, "question": f"And {turn}?", "context": "A mill.", "answer": "yes"}
        for dialogue in range(3)
        for turn in range(1, 5)
    ]
    return f"quac:{write_lines(tmp_path, *rows)}"


@pytest.mark.parametrize("choice", [{"ids": ("d1_3",)}, {"sample": 2, "seed": 1}, {"limit": 6}])
def test_turns_come_with_their_paths(talks: str, choice: dict[str, object]) -> None:
    whole = load_dataset(talks)
    chosen = choose_questions(whole, load_experiment(None, dataset=talks, **choice))
    names = [question.id for question in chosen.questions]
    assert all(question.turn is not None and question.turn.parent in {"", *names} for question in chosen.questions)
    if "ids" in choice:
        assert names == ["d1_1", "d1_2", "d1_3"]
        assert [question.id for question in load_dataset(talks, ids="d1_3").questions] == names


def test_turns_whose_history_is_given_are_chosen_alone(talks: str) -> None:
    chosen = choose_questions(load_dataset(talks), Experiment(dataset=talks, ids=("d1_3", "d2_2"), history="given"))
    assert [question.id for question in chosen.questions] == ["d1_3", "d2_2"]


def test_ranker_types_are_those_of_the_retriever() -> None:
    assert set(RankerType.__args__) == {*RANKERS, *REORDERING}


def test_password_in_the_address_of_a_rerank_model_is_not_written_down() -> None:
    experiment = Experiment(
        dataset="x:y", ranker_type="model", ranker_params={"model": "http://ada:lovelace@127.0.0.1/v1#m", "pre_topk": 5}
    )
    assert "lovelace" not in experiment.model_dump_json()
    model = (experiment.ranker_params or {})["model"]
    assert isinstance(model, Address)
    assert (str(model), model.credentials()) == ("http://127.0.0.1/v1#m", "ada:lovelace")
