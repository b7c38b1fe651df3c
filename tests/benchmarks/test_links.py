"""The ideal judge of the benchmark of links: its calls are counted as those of a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.documents import Document

from benchmarks.links import Measured, asked
from judgetree.evaluation.datasets.questions import CorpusDocument, Dataset, EvalQuestion
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.settings import load_settings

TITLES = ("Alder", "Birch", "Cedar")
QUESTION = EvalQuestion(id="q", question="Which tree is the tallest?", answers=("Cedar",), supporting=TITLES)
DATASET = Dataset(
    name="trees",
    questions=(QUESTION,),
    documents=tuple(CorpusDocument(key=each, title=each, text=f"{each} is a tree.") for each in TITLES),
)


class Searched:
    """Finds the first two passages for the question, and the third for any other query."""

    def fingerprint(self) -> dict[str, str]:
        return {"kind": "searched"}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        titles = TITLES[:2] if query == QUESTION.question else TITLES[2:]
        return [
            (Document(page_content=each, metadata={"chunk_id": each, DATASET.key_field: each}), 1.0) for each in titles
        ]


@pytest.mark.parametrize(("batched", "calls"), [(True, 2 + 2), (False, 3 + 2 * 2)])
def test_a_judge_of_sets_asks_for_a_missing_fact_once(tmp_path: Path, *, batched: bool, calls: int) -> None:
    settings = load_settings(home=tmp_path, checkpoints="memory:")
    found = asked(DATASET, None, settings, "sub_question", batched=batched, retriever=Searched())  # type: ignore[arg-type]
    assert found == [Measured(complete=1.0, calls=calls)]
