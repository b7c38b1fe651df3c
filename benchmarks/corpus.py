"""The project's own corpus with its questions, its index and the scripted model that knows it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_dialogues import Dialogue
from judgetree.evaluation.datasets.standards_qa import Question, load_standards_qa
from judgetree.graphs.rag.result import RagResult
from judgetree.graphs.session import RagSession
from judgetree.modules.index.factory import open_index
from judgetree.modules.index.index import Index
from judgetree.modules.settings import Settings, load_settings

DATA = Path(__file__).parents[1] / "data"
COLLECTION = "standards"


def questions(*types: str) -> list[Question]:
    """Return the questions of these types, in file order; all questions without a type."""
    return [row for row in load_standards_qa(DATA / "standards_qa.jsonl") if not types or row.type in types]


def settings_for(home: Path, base_url: str, *, max_concurrency: int = 32, **more: object) -> Settings:
    """Make settings with the scripted model at ``base_url`` and all files in ``home``."""
    return load_settings(llm=f"{base_url}#scripted", home=home, max_concurrency=max_concurrency, **more)


@contextmanager
def indexed_standards(settings: Settings) -> Iterator[Index]:
    """Open a finished index of ``data/standards``."""
    with open_index(COLLECTION, settings, data_path=DATA / "standards") as index:
        index.get_index_done()
        yield index


@contextmanager
def scripted_standards(
    *, dialogues: Sequence[Dialogue] = (), **more: object
) -> Iterator[tuple[ScriptedServer, Settings]]:
    """Start the scripted model; also gives settings, with ``more``, of a new home folder that holds the index."""
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(questions(), dialogues=dialogues) as server:
        settings = settings_for(Path(folder), server.base_url, **more)
        with indexed_standards(settings):
            pass
        yield server, settings


def ask_all(session: RagSession, asked: Iterable[str]) -> list[RagResult]:
    """Ask all questions at once; returns the results in their order."""

    async def ask() -> list[RagResult]:
        return await asyncio.gather(*(session.aask(question) for question in asked))

    return asyncio.run(ask())


def is_right(question: Question, answer: str, status: str) -> bool:
    """Whether an answer is the gold one or an alias, up to case and outer space; a refusal if nothing can be known."""
    if question.type == "unanswerable":
        return status == "refused"
    accepted: Sequence[str] = (question.answer, *question.aliases)
    return answer.strip().casefold() in {text.strip().casefold() for text in accepted}
