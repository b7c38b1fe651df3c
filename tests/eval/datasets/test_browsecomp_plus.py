"""BrowseComp-Plus: questions with their evidence, and the whole corpus with titles from its pages' headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.modules.errors import LoadingError
from tests.eval.browsecomp_files import PAGES, query, write_browsecomp_plus
from tests.eval.dataset_files import fault_of, write_lines


def test_questions_come_with_their_evidence_and_pages_with_their_titles(tmp_path: Path) -> None:
    dataset = load_dataset(f"browsecomp_plus:{write_browsecomp_plus(tmp_path, query('b', 'b', 'd'), query('a'))}")
    assert [(each.id, each.answers, each.supporting) for each in dataset.questions] == [
        ("2", ("red",), ("901", "903")),
        ("1", ("grey",), ("900",)),
    ]
    assert [(page.key, page.title, page.metadata["url"]) for page in dataset.documents][:1] == [
        ("900", "Ladder a", "https://ladders.example/a")
    ]
    assert (dataset.name, dataset.malformed) == ("browsecomp_plus", ())
    assert dataset.documents[0].text == PAGES["a"]


def test_a_question_whose_evidence_is_not_in_the_corpus_is_named(tmp_path: Path) -> None:
    unknown = {**query("a"), "evidence_docs": [{"docid": "7"}]}
    dataset = load_dataset(f"browsecomp_plus:{write_browsecomp_plus(tmp_path, unknown, query('b'))}")
    assert fault_of(dataset, 1) == "browsecomp_plus_decrypted.jsonl: there is no document '7' in corpus.jsonl"


def test_a_file_that_is_still_encrypted_has_no_valid_row(tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match="browsecomp_plus_decrypted"):
        load_dataset(f"browsecomp_plus:{write_browsecomp_plus(tmp_path, {'query_id': '1', 'query': 'q83=='})}")


def test_a_missing_corpus_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path, query("a"), name="browsecomp_plus_decrypted.jsonl")
    with pytest.raises(LoadingError, match=r"corpus\.jsonl"):
        load_dataset(f"browsecomp_plus:{tmp_path}")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Ladder\n---\nText", "Ladder"),
        (' ---\ndate: 2002\nTitle: "A: b"\n---', "A: b"),
        ("---\ndate: 2002\n---\ntitle: in the text", ""),
        ("title: no header", ""),
        ("---\ntitle:", ""),
    ],
)
def test_a_title_stands_in_the_header(text: str, title: str, tmp_path: Path) -> None:
    folder = write_browsecomp_plus(tmp_path, query("a"))
    write_lines(folder, {"docid": "900", "text": text}, name="corpus.jsonl")
    assert [page.title for page in load_dataset(f"browsecomp_plus:{folder}").documents] == [title]
