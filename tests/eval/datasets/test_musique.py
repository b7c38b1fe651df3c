from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.musique import load_musique
from tests.eval.dataset_files import fault_of, write_lines, write_list

TITLES = ["Mill", "Weir", "Lock", "Quay"]


def paragraph(idx: int, supporting: bool) -> dict[str, object]:
    return {"idx": idx, "title": TITLES[idx], "paragraph_text": f"Text {idx}.", "is_supporting": supporting}


def row(**changes: object) -> dict[str, object]:
    return {
        "id": "2hop__1_2",
        "question": "Who built the weir of the mill?",
        "answer": "Ada",
        "answer_aliases": ["Ada", "A. Brook"],
        "answerable": True,
        "paragraphs": [paragraph(idx, idx in (1, 3)) for idx in range(4)],
        "question_decomposition": [
            {"id": 1, "question": "Which mill?", "answer": "x", "paragraph_support_idx": 3},
            {"id": 2, "question": "Who built #1?", "answer": "Ada", "paragraph_support_idx": 1},
        ],
        **changes,
    }


def test_supporting_paragraphs_stand_in_hop_order(tmp_path: Path) -> None:
    dataset = load_musique(write_list(tmp_path, row()))
    [question] = dataset.questions
    keys = [document.key for document in dataset.documents]
    assert question.supporting == (keys[3], keys[1])
    assert (question.type, question.hops, question.answers) == ("2hop", 2, ("Ada", "A. Brook"))
    assert dataset.documents[0].text == "Mill. Text 0."
    assert load_musique(write_lines(tmp_path, row())) == dataset


def test_an_unanswerable_twin_has_an_id_of_its_own_and_no_answers(tmp_path: Path) -> None:
    twin = row(answerable=False, paragraphs=[paragraph(idx, idx == 1) for idx in (0, 1, 2)])
    dataset = load_musique(write_lines(tmp_path, row(), twin))
    answerable, unanswerable = dataset.questions
    assert answerable.is_answerable
    assert (unanswerable.id, unanswerable.type, unanswerable.hops) == ("2hop__1_2__unanswerable", "unanswerable", 2)
    assert (unanswerable.answers, unanswerable.supporting, unanswerable.is_answerable) == ((), (), False)
    assert len(dataset.documents) == 4


def test_without_a_decomposition_the_id_tells_the_hops(tmp_path: Path) -> None:
    dataset = load_musique(
        write_list(tmp_path, row(id="3hop1__7", question_decomposition=[]), row(id="own", question_decomposition=[]))
    )
    first, second = dataset.questions
    assert (first.type, first.hops, second.type, second.hops) == ("3hop1", 3, "own", None)
    assert first.supporting == (dataset.documents[1].key, dataset.documents[3].key)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"question_decomposition": [{"paragraph_support_idx": 9}]},
            "paragraph_support_idx 9 is not the idx",
        ),
        ({"paragraphs": [paragraph(1, True), paragraph(1, True)]}, "two have the same idx"),
        ({"answer": " "}, "an answerable question needs one"),
        ({"answer": None}, "an answerable question needs one"),
        ({"paragraphs": [{"idx": 0}]}, "paragraphs.0.title: Field required"),
    ],
)
def test_a_malformed_row_is_reported(tmp_path: Path, changes: dict[str, object], fault: str) -> None:
    dataset = load_musique(write_lines(tmp_path, row(id="bad", **changes), row()))
    assert fault in fault_of(dataset, 1)
    assert [question.id for question in dataset.questions] == ["2hop__1_2"]


@given(order=st.permutations(range(4)), hops=st.lists(st.integers(0, 3), max_size=4))
def test_a_named_paragraph_supports_once(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], hops: list[int]
) -> None:
    decomposition = [{"paragraph_support_idx": idx} for idx in hops]
    given_row = row(paragraphs=[paragraph(idx, idx == 2) for idx in order], question_decomposition=decomposition)
    dataset = load_musique(write_list(tmp_path_factory.mktemp("musique"), given_row))
    titles = {document.key: document.title for document in dataset.documents}
    named = [titles[key] for key in dataset.questions[0].supporting]
    assert named == list(dict.fromkeys(TITLES[idx] for idx in [*hops, 2]))
