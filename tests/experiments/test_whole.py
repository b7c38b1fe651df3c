"""The one command, from the first question to the pages, with a scripted model and a split of its own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from experiments import __main__, batches, questions
from experiments.answers import systems_of
from experiments.kept import read_kept
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_qa import Question, load_standards_qa
from tests.experiments.told_answers import check_told

QA = Path(__file__).parents[2] / "data" / "standards_qa.jsonl"
SIZES = {
    "pilot": ("hotpotqa", 2),
    "training": ("hotpotqa", 20),
    "stage_a_hotpotqa": ("hotpotqa", 4),
    "stage_a_2wiki": ("2wiki", 3),
    "stage_b_hotpotqa": ("hotpotqa", 2),
    "stage_b_2wiki": ("2wiki", 2),
}

FILLING = [[f"List {at}", [" ".join(f"entry{at}x{each}" for each in range(120))]] for at in range(80)]
"""Long paragraphs that no question needs, so that plain retrieval can take as many tokens as a judge."""


def row(question: Question) -> dict[str, object]:
    """A question in the form of HotpotQA and 2WikiMultihopQA, over paragraphs that are its quotes."""
    facts = {fact.source: fact.quote for fact in question.supporting}
    return {
        "_id": question.id,
        "question": question.question,
        "answer": question.answer,
        "type": question.type,
        "level": "hard",
        "supporting_facts": [[source, 0] for source in facts],
        "context": [[source, [quote]] for source, quote in facts.items()] + FILLING,
        "evidences": [],
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data sets, with the split that belongs to it."""
    rows = [row(each) for each in load_standards_qa(QA) if each.lang == "en" and each.supporting]
    ids = [str(each["_id"]) for each in sorted(rows, key=lambda each: str(each["type"]))]
    data = tmp_path / "data"
    data.mkdir()
    parts, taken = {}, 0
    for name, (form, size) in SIZES.items():
        first = parts[name.replace("_b_", "_a_")]["ids"][:size] if "_b_" in name else ids[taken : taken + size]
        taken += 0 if "_b_" in name else size
        parts[name] = {"file": form, "ids": first}
    for form in ("hotpotqa", "2wiki"):
        (data / f"{form}.json").write_text(json.dumps(rows if form == "hotpotqa" else rows[::-1]), encoding="utf-8")
    split = tmp_path / "split.json"
    split.write_text(json.dumps({"parts": parts, "files": dict.fromkeys(("hotpotqa", "2wiki"), ids)}))
    monkeypatch.setattr(questions, "SPLIT", split)
    monkeypatch.setattr(questions, "FILES", {form: form for form in ("hotpotqa", "2wiki")})
    monkeypatch.setattr(batches, "KEPT", tmp_path / "experiments" / "kept")
    return data


@pytest.mark.slow
def test_one_command_asks_a_model_and_writes_its_pages(folder: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    with ScriptedServer(QA) as server:
        given = [str(folder), "--llm", f"{server.base_url}#m", "--work", str(tmp_path / "work"), "--pages", str(pages)]
        __main__.main([*given, "--most", "1"])
        assert not [each for name in pages.glob("*.md") for each in name.read_text().splitlines() if each[:2] == "| "]
        assert "Not known yet: 2 of" in (pages / "evidence.md").read_text(encoding="utf-8")
        assert "Not known yet: 0 of the 4" in (pages / "answers.md").read_text(encoding="utf-8")
        __main__.main(given)
        asked = server.requests.total()
        __main__.main(given)
        assert server.requests.total() == asked, "nothing is asked twice"

    evidence = (pages / "evidence.md").read_text(encoding="utf-8")
    with (pages / "evidence.csv").open(encoding="utf-8") as file:
        rows = [each for each in csv.DictReader(file) if each["system"] == "judge"]
    share = 100 * sum(each["complete"] == "True" for each in rows) / len(rows)
    assert len(rows) == SIZES["stage_a_hotpotqa"][1] + SIZES["stage_a_2wiki"][1]
    assert f"(`m`) {share:.1f} % of {len(rows)} questions" in evidence
    assert f"all evidence, as it is | {share * len(rows) / 100:.0f} of {len(rows)} |" in evidence

    found = read_kept(tmp_path / "experiments" / "kept" / "m" / "stage_a_2wiki.jsonl")
    assert all(chunk.tokens for each in found for query in each.queries for chunk in query.chunks)

    answers = (pages / "answers.md").read_text(encoding="utf-8")
    with (tmp_path / "experiments" / "kept" / "m" / "answers.csv").open(encoding="utf-8") as file:
        kept = list(csv.DictReader(file))
    assert not [each for each in kept if each["status"] not in {"answered", "refused"}]
    assert len(kept) == len(systems_of(1)) * (SIZES["stage_b_hotpotqa"][1] + SIZES["stage_b_2wiki"][1])
    check_told(answers, kept)
