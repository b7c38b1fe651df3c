from pathlib import Path

import pytest

from judgetree.evaluation.datasets.standards import load_standards
from judgetree.modules.errors import LoadingError
from tests.eval.dataset_files import write_lines

REPO = Path(__file__).parents[3]


def fact(source: str, remaining: str = "") -> dict[str, str]:
    return {"source": source, "quote": "q", "question": "q?", "answer": "a", "remaining_question": remaining}


def row(identity: str, **changes: object) -> dict[str, object]:
    return {
        "id": identity,
        "lang": "zh",
        "question": "多厚？",
        "answer": "3 mm",
        "aliases": ["3mm"],
        "type": "2hop",
        "supporting": [fact("zh/b.md", "What then?"), fact("a.md")],
        **changes,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.md", "zh/b.md"):
        file = tmp_path / "standards" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("text")
    return tmp_path


def test_sources_stand_in_hop_order_over_the_folder_beside_the_file(folder: Path) -> None:
    dataset = load_standards(write_lines(folder, row("r1")))
    [question] = dataset.questions
    assert question.supporting == ("zh/b.md", "a.md")
    assert (question.answers, question.lang, question.type, question.hops) == (("3 mm", "3mm"), "zh", "2hop", 2)
    assert (dataset.folder, dataset.key_field, dataset.documents) == (folder / "standards", "source", ())


def test_an_unanswerable_question_has_neither_answers_nor_sources(folder: Path) -> None:
    [question] = load_standards(
        write_lines(folder, row("r1", type="unanswerable", answer="none", supporting=[]))
    ).questions
    assert (question.answers, question.supporting, question.hops) == ((), (), None)


def test_a_row_with_a_fault_or_an_unknown_source_is_malformed(folder: Path) -> None:
    lost = row("r2", type="single", supporting=[fact("c.md")])
    dataset = load_standards(write_lines(folder, row("r1"), lost, row("r3", type="single")))
    assert [number for number, _ in dataset.malformed] == [2, 3]
    assert "no file 'c.md'" in dataset.malformed[0][1]
    assert "type single needs 1" in dataset.malformed[1][1]


def test_the_digest_sees_the_documents(folder: Path) -> None:
    file = write_lines(folder, row("r1"))
    before = load_standards(file)
    assert load_standards(file) == before
    (folder / "standards" / "a.md").write_text("other")
    after = load_standards(file)
    assert after.corpus_digest != before.corpus_digest
    assert after.digest != before.digest


def test_the_folder_must_be_beside_the_file(tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match=r"no folder .*standards"):
        load_standards(write_lines(tmp_path, row("r1")))


def test_the_set_of_the_repository_is_read_without_a_fault() -> None:
    dataset = load_standards(REPO / "data" / "standards_qa.jsonl")
    assert (len(dataset.questions), dataset.malformed) == (70, ())
    assert {question.lang for question in dataset.questions if not question.is_answerable} == {"en", "zh"}
