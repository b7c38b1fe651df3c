"""A data set in the form of BrowseComp-Plus, written by hand: ladders in place of pages of the web."""

from __future__ import annotations

from pathlib import Path

from tests.eval.dataset_files import write_lines

NAMES = "abcd"
PAGES = {
    name: f"---\ntitle: Ladder {name}\ndate: 2002-03-01\n---\nLadder {name} is {colour}, its rungs are {name * 3} wide."
    for name, colour in zip(NAMES, ("grey", "red", "grey", "blue"), strict=True)
}
ANSWERS = {"a": "grey", "b": "red", "c": "green", "d": "blue"}
"""The answer about c is not what its page says."""


def question_of(name: str) -> str:
    return f"Which colour has ladder {name}?"


def document(name: str) -> dict[str, object]:
    return {"docid": f"90{NAMES.index(name)}", "text": PAGES[name], "url": f"https://ladders.example/{name}"}


def query(name: str, *evidence: str) -> dict[str, object]:
    """A row as the benchmark's script writes it, with the texts of its pages."""
    pages = [document(each) for each in evidence or name]
    return {
        "query_id": str(1 + NAMES.index(name)),
        "query": question_of(name),
        "answer": ANSWERS[name],
        "gold_docs": pages[:1],
        "evidence_docs": pages,
        "negative_docs": [document(each) for each in NAMES if each not in (evidence or name)],
    }


def write_browsecomp_plus(folder: Path, *rows: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder, *map(document, NAMES), name="corpus.jsonl")
    write_lines(folder, *(rows or map(query, NAMES)), name="browsecomp_plus_decrypted.jsonl")
    return folder
