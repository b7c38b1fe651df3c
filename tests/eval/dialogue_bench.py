"""Two dialogues over a small corpus, and the scripted model that leads them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_dialogues import load_dialogues
from judgetree.evaluation.rows.store import RunRow, RunStore
from judgetree.evaluation.rows.turn_facts import TurnFacts
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.modules.settings import load_settings
from tests.app.conftest import CORPUS, write_corpus
from tests.app.talks import DRUM
from tests.eval.dataset_files import write_lines
from tests.eval.run_bench import RunBench

_ASKED = [json.loads(json.dumps(asdict(turn))) for turn in DRUM.turns]
LINE = "en-dialogue-01"
FORK = "fork"
BRANCHES = {
    "id": FORK,
    "lang": "en",
    "kind": "branches",
    "turns": [*_ASKED[:2], {**_ASKED[2], "relevant_turns": [1]}, {**_ASKED[1], "turn": 4, "parent": 1}],
}
TURNS = len(DRUM.turns) + 4


class Bench(RunBench):
    """The drum's dialogue, one that goes back to its first turn, and a home of its own."""

    def rows(self) -> dict[tuple[str, str], RunRow]:
        """By system and question."""
        return {(row.system, row.question_id): row for row in RunStore(self.out).read_rows()}


@contextmanager
def opened(folder: Path, *, home: Path | None = None) -> Iterator[Bench]:
    """The bench in a folder; ``home`` is copied, for what is indexed and embedded there."""
    data = folder / "data"
    write_corpus(data / "standards", {name: text for name, text in CORPUS.items() if name != "zh.md"})
    file = write_lines(data, asdict(DRUM), BRANCHES)
    if home is not None:
        shutil.copytree(home, folder / "home", ignore=shutil.ignore_patterns("completions*"))
    with ScriptedServer(dialogues=load_dialogues(file)) as server:
        yield Bench(
            server=server,
            settings=load_settings(
                llm=f"{server.base_url}#scripted", home=folder / "home", retries=0, embeddings="local:use"
            ),
            experiment=Experiment(
                dataset=f"dialogues:{file}", systems=("naive",), topk=1, search_type="sparse", concurrency=1
            ),
            out=folder / "run",
        )


def turn(dialogue: str, number: int) -> str:
    """The id of a turn."""
    return f"{dialogue}-turn-{number}"


def facts(row: RunRow) -> TurnFacts:
    """Of a turn."""
    assert row.conversation is not None
    return row.conversation
