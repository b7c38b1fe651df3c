"""Files of the same questions in the shapes and encodings that people have; run it to write them into a folder."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

LONG = "A context of " + "many words, " * 20_000
GOLD: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "001": ("Who wrote “Faust”, part one?", ("Goethe", "J. W. v. Goethe")),
    "007": ("Which agent has the licence?", ("007",)),
    "p": ("What is the chance of A given B?", ("P(A|B)", "P(A | B)")),
    "w": ("What counts; who is logged in?", ("who | wc -l",)),
    "d": ("Wie lang ist es, auf Zürich zu warten?", ("3,5",)),
    "v": ("Which version is it?", ("1.0", "1.00")),
    "n": ("How many moons has Venus?", ("None",)),
    "t": ("Is it so?", ("TRUE",)),
    "i": ("Which interval?", ("[0, 1)",)),
    "q": ('"Naïve" is which word?', ('5" of it', "it's")),
    "l": (LONG + "what?", ("a café",)),
    "e": ("Who signed it?", ()),
}
"""Id to question and answers; every letter stands in every encoding of ``ENCODINGS``."""
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252")


def _cell(answers: tuple[str, ...]) -> str:
    return " | ".join(answer.replace("|", "\\|") for answer in answers)


def _table(separator: str, cell: Callable[[tuple[str, ...]], str], **options: object) -> str:
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter=separator, **options)  # type: ignore[arg-type]
    rows.writerow(["id", " question ", "answer", "note", ""])
    rows.writerows([name, question, cell(answers), "", ""] for name, (question, answers) in GOLD.items())
    return text.getvalue() + (options.get("lineterminator", "\r\n") if separator == "," else "")


def _numpy(answers: tuple[str, ...]) -> str:
    return str(np.array(answers, dtype=object)) if answers else ""


def _squad(answers: tuple[str, ...]) -> str:
    return str({"text": np.array(answers, dtype=object), "answer_start": np.arange(len(answers))})


def _frame(answer: Callable[[tuple[str, ...]], object] = list) -> pd.DataFrame:
    return pd.DataFrame(
        [{"id": name, "question": question, "answer": answer(gold)} for name, (question, gold) in GOLD.items()]
    )


def _json(orient: str, answer: Callable[[tuple[str, ...]], object] = list) -> Callable[[], str]:
    return lambda: str(_frame(answer).to_json(orient=orient, force_ascii=False, lines=orient == "lines"))


def _lines(answer: Callable[[tuple[str, ...]], object]) -> Callable[[], str]:
    return lambda: str(_frame(answer).to_json(orient="records", lines=True, force_ascii=False))


def _trivia(answers: tuple[str, ...]) -> object:
    return {"value": answers[0], "aliases": [*answers[1:]], "normalized_value": "x"} if answers else None


def _unquoted() -> str:
    lines = ["\t".join(("id", "question", "answer"))]
    lines += ["\t".join((name, question, _cell(answers))) for name, (question, answers) in GOLD.items()]
    return "\n".join(lines) + "\n\n"


SHAPES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "comma": ("q.csv", lambda: _table(",", _cell)),
    "semicolon, Python lists": ("q.csv", lambda: _table(";", lambda answers: str([*answers]))),
    "semicolon, named": ("q.csv", lambda: "sep=;\r\n" + _table(";", lambda answers: json.dumps([*answers]))),
    "tab in CSV": ("q.csv", lambda: _table("\t", _cell)),
    "bars": ("q.csv", lambda: _table("|", lambda answers: json.dumps([*answers], ensure_ascii=False))),
    "numpy lists": ("q.csv", lambda: _table(",", _numpy, quoting=csv.QUOTE_ALL)),
    "SQuAD in CSV": ("q.csv", lambda: _table(",", _squad)),
    "TSV with quotes as letters": ("q.tsv", _unquoted),
    "TSV with quoted cells": ("q.tsv", lambda: _table("\t", _cell, quoting=csv.QUOTE_ALL, lineterminator="\n")),
    "records": ("q.json", _json("records")),
    "columns": ("q.json", _json("columns")),
    "index": ("q.json", _json("index")),
    "split": ("q.json", _json("split")),
    "table": ("q.json", _json("table")),
    "lists by column": ("q.json", lambda: json.dumps(_frame().to_dict("list"), ensure_ascii=False)),
    "JSON Lines": ("q.jsonl", _lines(list)),
    "TriviaQA": ("q.jsonl", _lines(_trivia)),
    "SQuAD": ("q.jsonl", _lines(lambda answers: {"text": [*answers], "answer_start": [0] * len(answers)})),
    "objects with an answer each": ("q.jsonl", _lines(lambda answers: [{"text": each} for each in answers])),
}
"""By name, the file and what stands in it."""


def write_shape(name: str, encoding: str, folder: Path) -> Path:
    """Write the file of one shape in one encoding."""
    file, made = SHAPES[name]
    (folder / file).write_bytes(made().encode(encoding))
    return folder / file


if __name__ == "__main__":
    for shape in SHAPES:
        for coded in ENCODINGS:
            place = Path(sys.argv[1]) / f"{shape} {coded}".replace(" ", "_")
            place.mkdir(parents=True, exist_ok=True)
            write_shape(shape, coded, place)
