"""Clusters of questions that depend on each other."""

from __future__ import annotations

from pathlib import Path

from judgetree.evaluation.datasets.musique import load_musique
from judgetree.evaluation.metrics.clusters import clusters_of
from tests.eval.dataset_files import write_lines


def test_questions_of_musique_that_share_a_single_hop_question_are_one_cluster(tmp_path: Path) -> None:
    paragraphs = [{"idx": 0, "title": "A", "paragraph_text": "A is B.", "is_supporting": True}]
    rows = [
        {"id": name, "question": f"{name}?", "answer": "B", "paragraphs": paragraphs}
        for name in ("2hop__1_2", "3hop1__2_3_4", "2hop__5_6", "2hop__4_7")
    ]
    questions = load_musique(write_lines(tmp_path, *rows)).questions
    assert [each.shares for each in questions] == [("1", "2"), ("2", "3", "4"), ("5", "6"), ("4", "7")]
    assert list(clusters_of({each.id: each.shares for each in questions}).values()) == [
        *("2hop__1_2", "2hop__1_2", "2hop__5_6", "2hop__1_2")
    ]


def test_a_question_that_is_named_as_a_fact_is_another_thing() -> None:
    assert clusters_of({"a": ("b",), "b": ()}) == {"a": "a", "b": "b"}
