from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.evaluation.datasets.beir import load_beir
from judgetree.modules.errors import LoadingError
from tests.eval.dataset_files import write_lines

CORPUS = [
    {"_id": "d1", "title": "Mill", "text": "It grinds.", "metadata": {"url": "x"}},
    {"_id": "d2", "title": "", "text": "A weir."},
    {"_id": "d3", "text": "A lock."},
]
QUERIES = [
    {"_id": "q1", "text": "What grinds?"},
    {"_id": "q2", "text": "哪里有水？"},
    {"_id": "q3", "text": "Unjudged?"},
]
QRELS = ["query-id\tcorpus-id\tscore", "q2\td3\t1", "q1\td2\t1", "q1\td1\t2", "q1\td3\t0"]

Writer = Callable[..., Path]


@pytest.fixture
def beir(tmp_path: Path) -> Writer:
    def written(
        corpus: list[object] = CORPUS,  # type: ignore[assignment]
        queries: list[object] = QUERIES,  # type: ignore[assignment]
        **splits: list[str],
    ) -> Path:
        write_lines(tmp_path, *corpus, name="corpus.jsonl")
        write_lines(tmp_path, *queries, name="queries.jsonl")
        (tmp_path / "qrels").mkdir()
        for split, lines in (splits or {"test": QRELS}).items():
            write_lines(tmp_path / "qrels", *lines, name=f"{split}.tsv")
        return tmp_path

    return written


def test_judged_queries_come_in_file_order_with_their_documents_best_first(beir: Writer) -> None:
    dataset = load_beir(beir())
    assert [(question.id, question.supporting) for question in dataset.questions] == [
        ("q1", ("d1", "d2")),
        ("q2", ("d3",)),
    ]
    assert [question.lang for question in dataset.questions] == ["en", "zh"]
    assert [(document.key, document.text) for document in dataset.documents] == [
        ("d1", "Mill. It grinds."),
        ("d2", "A weir."),
        ("d3", "A lock."),
    ]
    assert dataset.malformed == ()


def test_without_answers_nothing_is_called_unanswerable(beir: Writer) -> None:
    [question, *_] = load_beir(beir()).questions
    assert (question.answers, question.answers_known, question.is_answerable) == ((), False, True)


@pytest.mark.parametrize(
    ("metadata", "answers"),
    [({"answer": "a mill"}, ("a mill",)), ({"answers": ["mill", "the mill", 3]}, ("mill", "the mill")), ({}, ())],
)
def test_answers_come_from_the_metadata(beir: Writer, metadata: dict[str, object], answers: tuple[str, ...]) -> None:
    queries = [{**QUERIES[0], "metadata": metadata}]
    [question] = load_beir(beir(queries=queries, test=["q1\td1\t1"])).questions
    assert (question.answers, question.answers_known) == (answers, bool(answers))


def test_a_split_is_chosen_by_name(beir: Writer) -> None:
    folder = beir(test=QRELS, dev=["q3\td2\t1"])
    assert [question.id for question in load_beir(folder, split="dev").questions] == ["q3"]
    with pytest.raises(LoadingError, match=r"no split 'train' .* Allowed: dev, test"):
        load_beir(folder, split="train")
    with pytest.raises(LoadingError, match="no split"):
        load_beir(folder, split="../qrels/test")


def test_trec_columns_and_windows_line_ends_are_understood(beir: Writer) -> None:
    [question] = load_beir(beir(test=["q1\t0\td1\t1\r", "q1\t0\td2\t0.5\r"])).questions
    assert question.supporting == ("d1", "d2")


def test_malformed_rows_are_named_with_their_file(beir: Writer) -> None:
    folder = beir(
        corpus=[*CORPUS, {"_id": "d4", "title": " ", "text": None}, {"_id": "d1", "text": "Again."}],
        queries=["{", *QUERIES],
        test=[*QRELS, "q1\td9\t1", "q9\td1\t1", "q1 d1 1", "q1\td3\thigh", "q2\td3\t1"],
    )
    dataset = load_beir(folder)
    assert [(number, what.partition(": ")[0]) for number, what in dataset.malformed] == [
        (4, "corpus.jsonl"),
        (5, "corpus.jsonl"),
        (1, "queries.jsonl"),
        *((number, "test.tsv") for number in range(6, 11)),
    ]
    keys = {document.key for document in dataset.documents}
    assert all(key in keys for question in dataset.questions for key in question.supporting)
    assert dataset.documents[0].text == "Mill. It grinds."


def test_a_split_that_judges_nothing_is_refused_with_a_reason(beir: Writer) -> None:
    with pytest.raises(LoadingError, match=r"Row 2 of it: test\.tsv: there is no document 'd9'"):
        load_beir(beir(test=[QRELS[0], "q1\td9\t1"]))


def test_a_folder_of_another_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match="qrels/<split>"):
        load_beir(tmp_path)
    (tmp_path / "qrels").mkdir()
    write_lines(tmp_path / "qrels", *QRELS, name="test.tsv")
    with pytest.raises(LoadingError, match=r"corpus\.jsonl"):
        load_beir(tmp_path)
