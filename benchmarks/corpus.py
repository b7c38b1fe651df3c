"""The project's own corpus, indexed once, and sessions over it: what several benchmarks stand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from judgetree.evaluation.datasets.standards_qa import Question, load_standards_qa
from judgetree.modules.index.factory import open_index
from judgetree.modules.index.index import Index
from judgetree.modules.settings import Settings, load_settings

DATA = Path(__file__).parents[1] / "data"
COLLECTION = "standards"


def questions(*types: str) -> list[Question]:
    """The questions of these types, all of them without any; in file order."""
    return [row for row in load_standards_qa(DATA / "standards_qa.jsonl") if not types or row.type in types]


def settings_for(home: Path, base_url: str, *, max_concurrency: int = 32, **more: object) -> Settings:
    """Settings that use the scripted model at ``base_url`` and keep everything in ``home``."""
    return load_settings(llm=f"{base_url}#scripted", home=home, max_concurrency=max_concurrency, **more)


@contextmanager
def indexed_standards(settings: Settings) -> Iterator[Index]:
    """An open, finished index of ``data/standards``."""
    with open_index(COLLECTION, settings, data_path=DATA / "standards") as index:
        index.get_index_done()
        yield index


def is_right(question: Question, answer: str, status: str) -> bool:
    """Exact match with the answer or an alias, case and outer space aside; a refusal where nothing can be known."""
    if question.type == "unanswerable":
        return status == "refused"
    accepted: Sequence[str] = (question.answer, *question.aliases)
    return answer.strip().casefold() in {text.strip().casefold() for text in accepted}
