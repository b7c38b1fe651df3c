from pathlib import Path

import pytest

from judgetree.evaluation.datasets.dialogue_turns import turn_of
from judgetree.evaluation.datasets.mtrag import load_mtrag
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.modules.errors import LoadingError, SettingsError
from tests.eval.dataset_files import fault_of, write_lines

LOCK = {"document_id": "p1", "title": "Lock", "text": "Lock\nA lock has gates."}
WEIR = {"document_id": "p2", "title": "Weir", "text": "A weir has none."}
MARKED = {"relevant": {"ann": {"value": "yes", "timestamp": 1}}}


def task(number: int, conversation: str = "c", domain: str = "clapnq", **changes: object) -> dict[str, object]:
    said = [
        {"speaker": speaker, "text": f"{text} {place}", "metadata": {"author_type": "human"}}
        for place in range(1, number + 1)
        for speaker, text in (("user", "Question"), ("agent", "Answer"))
    ]
    return {
        "conversation_id": conversation,
        "task_id": f"{conversation}<::>{number}",
        "turn": str(number),
        "contexts": [{**LOCK, "reference": True}, WEIR],
        "input": said[:-1],
        "targets": [{"speaker": "agent", "text": f"Target {number}"}],
        "Answerability": ["ANSWERABLE"],
        "Collection": f"mt-rag-{domain}-elser-512-100-20240503",
        "Multi-Turn": float("nan"),
        **changes,
    }


def write_benchmark(folder: Path, name: str, *tasks: object) -> Path:
    """The human data under a name; the folder of the benchmark."""
    tables = folder / name / "retrieval_tasks" / "clapnq"
    tables.mkdir(parents=True)
    (folder / name / "generation_tasks").mkdir()
    write_lines(folder / name / "generation_tasks", *tasks, name="reference.jsonl")
    rewrite = {"_id": "c::2", "text": "|user|: Which lock is question 2?"}
    write_lines(tables, rewrite, {"_id": "ann_17", "text": "|user|: ?"}, {"_id": "x"}, name="clapnq_rewrite.jsonl")
    return folder


def write_corpus(folder: Path, *passages: object, domain: str = "clapnq") -> None:
    corpora = folder / "corpora" / "passage_level"
    corpora.mkdir(parents=True, exist_ok=True)
    write_lines(corpora, *passages, name=f"{domain}.jsonl")


def test_a_task_is_its_last_question_over_the_contexts(tmp_path: Path) -> None:
    dataset = load_mtrag(write_lines(tmp_path, task(2), task(1)))
    first, second = dataset.questions
    assert (second.id, second.question, second.answers, second.type) == (
        "c<::>2",
        "Question 2",
        ("Target 2",),
        "answerable",
    )
    assert second.supporting == ("p1",)
    turn = turn_of(second)
    assert (turn.dialogue_id, turn.number, turn.parent) == ("c", 2, first.id)
    assert turn.history == (("Question 1", "Answer 1"),)
    assert [(each.key, each.title, each.text) for each in dataset.documents] == [
        ("p1", "Lock", "Lock\nA lock has gates."),
        ("p2", "Weir", "Weir. A weir has none."),
    ]


def test_a_context_is_a_reference_if_it_says_so_or_was_marked(tmp_path: Path) -> None:
    refused = {"relevant": {"ann": {"value": "no"}}}
    contexts = [{**LOCK, "feedback": MARKED}, {**WEIR, "feedback": refused}, {**WEIR, "document_id": "p3"}]
    [question] = load_mtrag(write_lines(tmp_path, task(1, contexts=contexts))).questions
    assert question.supporting == ("p1",)


@pytest.mark.parametrize(
    ("answerability", "answers", "known"),
    [
        (["PARTIAL"], ("Target 1",), True),
        (["UNANSWERABLE"], (), True),
        (["CONVERSATIONAL"], (), False),
        ([], (), False),
    ],
)
def test_answers_go_by_answerability(
    tmp_path: Path, answerability: list[str], answers: tuple[str, ...], known: bool
) -> None:
    row = task(1, answerability=answerability)
    del row["Answerability"]
    [question] = load_mtrag(write_lines(tmp_path, row)).questions
    assert (question.answers, question.answers_known) == (answers, known)


def test_a_turn_that_is_no_task_leaves_its_successor_without_a_parent(tmp_path: Path) -> None:
    _, last = load_mtrag(write_lines(tmp_path, task(1), task(3))).questions
    assert turn_of(last).parent == ""
    assert len(turn_of(last).history) == 2


@pytest.mark.parametrize("name", ["mtrag-human", "human", "."])
def test_a_folder_brings_rewrites_and_the_corpora_that_are_unzipped(tmp_path: Path, name: str) -> None:
    folder = write_benchmark(tmp_path, name, task(1), task(2), task(1, "d", domain="ibmcloud"))
    write_corpus(folder, {"_id": "p1", "title": "Lock", "text": "Lock\nOf the corpus."}, {"_id": "p9", "text": "Far."})
    write_corpus(folder, {"_id": "p8", "text": "Of no task."}, domain="fiqa")
    dataset = load_mtrag(folder)
    assert [turn_of(question).rewrite for question in dataset.questions] == ["", "Which lock is question 2?", ""]
    assert [document.key for document in dataset.documents] == ["p1", "p9", "p2"]
    assert dataset.documents[0].text == "Lock\nOf the corpus."
    assert fault_of(dataset, 3).startswith("clapnq_rewrite.jsonl:")


def test_a_task_may_bring_its_rewrite(tmp_path: Path) -> None:
    [question] = load_mtrag(write_lines(tmp_path, task(1, rewritten_query="Which lock?"))).questions
    assert turn_of(question).rewrite == "Which lock?"


def test_a_split_is_a_domain(tmp_path: Path) -> None:
    file = write_lines(tmp_path, task(1), task(1, "d", domain="ibmcloud"))
    assert [question.id for question in load_dataset(f"mtrag:{file}", split="cloud").questions] == ["d<::>1"]
    with pytest.raises(SettingsError, match=r"'fiqa' is not a domain of these tasks\. Allowed: clapnq, cloud"):
        load_dataset(f"mtrag:{file}", split="fiqa")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"input": []}, "input: "),
        (
            {"input": [{"speaker": "user", "text": "Who?"}, {"speaker": "agent", "text": "I."}]},
            "must be a question of the user",
        ),
        ({"contexts": [{"text": "x"}]}, "document_id: "),
        ({"task_id": "c<::>1"}, "was already in row 1"),
    ],
)
def test_a_malformed_row_is_reported_and_left_out(tmp_path: Path, changes: dict[str, object], fault: str) -> None:
    dataset = load_mtrag(write_lines(tmp_path, task(1), task(2, **changes)))
    assert [question.id for question in dataset.questions] == ["c<::>1"]
    assert fault in fault_of(dataset, 2)


def test_a_folder_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadingError, match=r"has no generation_tasks/reference\.jsonl"):
        load_mtrag(tmp_path)
