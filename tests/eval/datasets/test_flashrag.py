from pathlib import Path

import pytest

from judgetree.evaluation.datasets.flashrag import load_flashrag
from judgetree.evaluation.datasets.registry import load_dataset
from tests.eval.dataset_files import fault_of, write_lines

ROW = {"id": "test_0", "question": "What grinds?", "golden_answers": ["mill", "a mill", "mill"]}


def test_a_row_becomes_a_question_without_a_corpus(tmp_path: Path) -> None:
    dataset = load_flashrag(write_lines(tmp_path, {**ROW, "metadata": {"type": "bridge", "context": {}}}))
    [question] = dataset.questions
    assert (question.id, question.answers, question.type) == ("test_0", ("mill", "a mill"), "bridge")
    assert (question.hops, question.supporting) == (None, ())
    assert (dataset.documents, dataset.folder, dataset.corpus_digest) == ((), None, "")


def test_titles_of_supporting_facts_are_keys_for_another_corpus(tmp_path: Path) -> None:
    facts = {"title": ["Mill", "Oslo", "Mill"], "sent_id": [0, 1, 2]}
    forms: list[object] = [{"supporting_facts": facts}, {"supporting_facts": [["Mill", 0]]}, {"supporting_facts": {}}]
    file = write_lines(tmp_path, *({**ROW, "id": str(n), "metadata": form} for n, form in enumerate([*forms, None])))
    dataset = load_dataset(f"flashrag:{file}", by_title=True)
    assert [each.supporting for each in dataset.questions] == [("Mill", "Oslo"), ("Mill",), (), ()]
    assert [each.hops for each in dataset.questions] == [2, 1, None, None]
    assert dataset.key_field == "source"
    assert [each.supporting for each in load_dataset(f"flashrag:{file}").questions] == [()] * 4


def test_numbers_stand_for_strings_and_metadata_may_be_missing(tmp_path: Path) -> None:
    row = {"id": 7, "question": "多少？", "golden_answers": [1999], "metadata": {"type": ["x"]}}
    first, second = load_flashrag(write_lines(tmp_path, row, ROW)).questions
    assert (first.id, first.answers, first.type, first.lang) == ("7", ("1999",), "", "zh")
    assert (second.type, second.lang) == ("", "en")


@pytest.mark.parametrize("answers", [[], [" "], None, "mill"])
def test_a_row_without_answers_is_malformed(tmp_path: Path, answers: object) -> None:
    dataset = load_flashrag(write_lines(tmp_path, ROW, {**ROW, "id": "bad", "golden_answers": answers}))
    assert fault_of(dataset, 2).startswith("golden_answers")
