"""The same questions in every shape and encoding that people have: read to the letter."""

from pathlib import Path

import pytest

from judgetree.evaluation.datasets.own_questions import load_own_questions
from judgetree.evaluation.metrics.answers import score_answer
from tests.eval.question_shapes import ENCODINGS, GOLD, SHAPES, write_shape

SPLITS_TEXT = {"SQuAD", "SQuAD in CSV"}
"""Shapes that say of a question without an answer that it has none."""


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_that_answers_with_gold_is_always_right(tmp_path: Path, shape: str, encoding: str) -> None:
    dataset = load_own_questions(write_shape(shape, encoding, tmp_path))
    assert {each.id: (each.question, each.answers) for each in dataset.questions} == GOLD
    for each in dataset.questions:
        for answer in GOLD[each.id][1]:
            assert score_answer(each, answer, refused=False).em == 1
    unanswerable = [each.id for each in dataset.questions if not each.is_answerable]
    assert unanswerable == (["e"] if shape in SPLITS_TEXT else [])
    assert dataset.read is not None
    assert (dataset.read.questions, dataset.read.with_answers) == (len(GOLD), len(GOLD) - 1)
