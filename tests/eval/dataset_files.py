"""Tiny data set files in the public formats, written for the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from judgetree.evaluation.datasets.questions import Dataset

Row = Mapping[str, object]


def write_list(folder: Path, *rows: object, name: str = "rows.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return file


def write_lines(folder: Path, *rows: object, name: str = "rows.jsonl") -> Path:
    """Rows that are strings are written as they are."""
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    file = folder / name
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def write_standards(folder: Path, quotes: Mapping[str, str], *rows: object) -> Path:
    """Documents by name, and questions over them; returns the file of the questions."""
    (folder / "standards").mkdir(parents=True)
    for name, text in quotes.items():
        (folder / "standards" / name).write_text(text, encoding="utf-8")
    return write_lines(folder, *rows, name="qa.jsonl")


def standards_row(identity: str, question: str, answer: str, source: str, quote: str) -> dict[str, object]:
    """A question that one quote answers."""
    fact = {"source": source, "quote": quote, "question": question, "answer": answer}
    shared = {"id": identity, "lang": "en", "question": question, "answer": answer}
    return {**shared, "type": "single", "supporting": [fact]}


def fault_of(dataset: Dataset, number: int) -> str:
    """The fault of a row that alone is malformed."""
    [(found, fault)] = dataset.malformed
    assert found == number
    return fault


def hotpot_row(
    number: int,
    context: Sequence[tuple[str, Sequence[str]]] = (("Mill", ["A mill.", " It grinds."]), ("Weir", ["A weir."])),
    supporting: Sequence[tuple[str, int]] = (("Weir", 0), ("Mill", 1), ("Weir", 0)),
    **changes: object,
) -> dict[str, object]:
    row: dict[str, object] = {
        "_id": f"q{number}",
        "question": f"Which river drives mill {number}?",
        "answer": "yes",
        "type": "bridge",
        "level": "hard",
        "context": [[title, list(sentences)] for title, sentences in context],
        "supporting_facts": [list(fact) for fact in supporting],
    }
    return {**row, **changes}
