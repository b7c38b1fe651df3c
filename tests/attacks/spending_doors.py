"""Commands that ask a model, as they are started again and again against an endpoint that keeps its bill."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.app.commands.test_eval_calibrate import write_mills
from tests.app.conftest import CHAIN, CHINESE, COLLECTION, Cli, Outcome, write_corpus
from tests.eval.dataset_files import write_lines

Limit = tuple[str, float]
"""An option and its value."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What a command is started with."""

    cli: Cli
    chat: Cli
    """``judgetree chat`` with lines on a pipe."""
    folder: Path

    @property
    def questions(self) -> str:
        """Two questions over a small corpus, as a data set."""
        write_corpus(self.folder / "data" / "standards")
        rows = (asdict(CHAIN), asdict(CHINESE))
        return f"standards:{write_lines(self.folder / 'data', *rows, name='qa.jsonl')}"


Words = Callable[[Stage, Sequence[str]], Sequence[str]]
"""The words of a command from those of its limit."""


def _nothing(stage: Stage, limit: Sequence[str]) -> None:
    """Most commands need nothing before."""


def _none_booked(document: Mapping[str, object]) -> None:
    """A document without a sum."""


@dataclass(frozen=True, kw_only=True)
class Play:
    """A command, its limits, and where it says how many calls a start has paid for."""

    words: Words
    limits: Sequence[Limit] = ()
    is_over_all_starts: bool = False
    """Whether the limit holds for all starts together, else for each."""
    counts_failed_starts: bool = False
    """Whether ``calls`` has those of the failed starts before too."""
    calls: Callable[[dict[str, object]], object] = _none_booked
    """Calls of one start as its JSON document has them; None where it has none."""
    prepare: Callable[[Stage, Sequence[str]], None] = _nothing
    """Runs before the bill begins; takes the limit too."""
    starts: int = 5
    shares: Sequence[str] = ("none-fails", "some-fail", "all-fail")
    quick: str = "some-fail"
    """The share that is played with the first limit in each run of the tests; "" for none."""
    start: Callable[[Stage, Sequence[str]], Outcome] = field(default=lambda stage, words: stage.cli(*words))


TREE: Sequence[Limit] = (("--max-tree-tokens", 2500), ("--max-tree-cost-usd", 2.5), ("--max-llm-calls", 12))
OF_A_RUN: Sequence[Limit] = (("--max-calls", 8), ("--max-tokens", 2000), ("--max-cost", 2.0))


def _ask(stage: Stage, limit: Sequence[str]) -> Sequence[str]:
    begun = stage.cli("threads", "--json").ok().out
    again = ("--resume",) if '"t"' in begun else (CHAIN.question, "-c", COLLECTION, *limit)
    return ("ask", *again, "--thread-id", "t", "--json")


def _asked(stage: Stage, limit: Sequence[str]) -> None:
    stage.cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", "t", *limit).ok()


def _recorded(stage: Stage, limit: Sequence[str]) -> None:
    given = ("--dataset", stage.questions, "--judge", "generated", "--topk", "1", "--depth", "1")
    stage.cli("eval", "record", str(stage.folder / "recorded"), *given).ok()


def _chat(stage: Stage, words: Sequence[str]) -> Outcome:
    """Each start asks the question, or goes on with it where it failed."""
    return stage.chat(CHAIN.question, options=tuple(words))


def _run(stage: Stage, limit: Sequence[str], *more: str) -> Sequence[str]:
    given = ("--dataset", stage.questions, "--systems", "judge", "--cache", "off", "--retry", "failed")
    return ("eval", "run", *given, "--out", str(stage.folder / "run"), *limit, *more, "--json")


def _sweep(stage: Stage, limit: Sequence[str], *more: str) -> Sequence[str]:
    """Each start has a further combination before those of the starts before it."""
    number = len(list(stage.folder.glob("sweep-*.yaml")))
    file = stage.folder / f"sweep-{number}.yaml"
    file.write_text(f"topk: [{number + 1}]\nmax_rec_depth: [1, 2]\n", encoding="utf-8")
    given = ("--dataset", stage.questions, "--systems", "judge", "--cache", "off", "--config", str(file))
    return ("eval", "run", *given, "--out", str(stage.folder / "sweep"), *limit, *more, "--json")


def _calls_of(name: str) -> Callable[[dict[str, object]], object]:
    """Return a reading of a dotted name."""

    def read(document: dict[str, object]) -> object:
        found: object = document
        for part in name.split("."):
            assert isinstance(found, dict)
            found = found[part]
        return found

    return read


def _of_graph(document: dict[str, object]) -> object:
    [graph] = document["graphs"]  # type: ignore[misc, attr-defined]
    return graph["extraction"]["calls"]  # type: ignore[index]


PLAYS: dict[str, Play] = {
    "ask": Play(words=_ask, limits=TREE, is_over_all_starts=True, calls=_calls_of("usage_this_run.llm_calls")),
    "chat": Play(
        words=lambda stage, limit: (
            *("-c", COLLECTION, "--conversation", "s", "--json", "--direct-answer", "--summary-memory"),
            *limit,
        ),
        limits=TREE[:2],
        start=_chat,
    ),
    "fork": Play(
        prepare=_asked,
        words=lambda stage, limit: ("fork", "t", "--node", "1", "--set", "topk=4", "--json"),
        limits=TREE,
        is_over_all_starts=True,
        quick="all-fail",
        calls=_calls_of("usage_this_run.llm_calls"),
    ),
    "explain": Play(
        prepare=_asked,
        words=lambda stage, limit: ("explain", "t", "--yes", "--json"),
        calls=_calls_of("usage.llm_calls"),
        counts_failed_starts=True,
        quick="",
    ),
    "replay": Play(
        prepare=_recorded,
        words=lambda stage, limit: (
            *("replay", str(stage.folder / "recorded"), "--answer", "--yes", "--cache", "off", "--json"),
            *("--policy", "breadth", "--budget", "2,12", *limit),
        ),
        limits=(("--max-calls", 2), ("--max-cost", 0.5)),
        calls=_calls_of("reading.calls"),
    ),
    "index": Play(
        words=lambda stage, limit: ("index", "-c", COLLECTION, "--graph", "triples", "--yes", "--json", *limit),
        limits=(("--max-cost", 0.8),),
        calls=_of_graph,
    ),
    "eval calibrate": Play(
        words=lambda stage, limit: (
            *("eval", "calibrate", "--judge", "batched", "--json"),
            *("--dataset", write_mills(stage.folder / "mills_train.json")),
        ),
        calls=_calls_of("paid_calls"),
        shares=("none-fails", "some-fail"),
        quick="",
    ),
    "eval run": Play(words=_run, limits=OF_A_RUN, is_over_all_starts=True),
    "eval run, with workers": Play(
        words=lambda stage, limit: _run(stage, limit, "--workers", "2"),
        limits=OF_A_RUN[1:2],
        is_over_all_starts=True,
        starts=2,
        shares=("some-fail",),
        quick="",
    ),
    "eval run, a sweep": Play(words=_sweep, limits=OF_A_RUN, is_over_all_starts=True),
    "eval run, the estimate of a sweep": Play(
        words=lambda stage, limit: _sweep(stage, limit, "--dry-run", "--pilot", "2"),
        limits=OF_A_RUN,
        is_over_all_starts=True,
    ),
}
"""By command, a play of it; variants after a comma."""

ELSEWHERE = {
    "eval score": "tests/attacks/test_bills.py",
    "eval ragas": "tests/attacks/test_bills.py",
    "eval record": "tests/attacks/test_bills.py",
    "serve": "tests/app/server/safety/test_budgets.py",
    "doctor": "one call a model",
    "demo": "a scripted model",
}
"""Commands that are played in another file, or whose bill needs no play."""


def priced_home() -> None:
    """Give the scripted model a price in the home of the settings: a tenth of a cent a token."""
    (Path(os.environ["JUDGETREE_HOME"]) / "prices.toml").write_text(
        '[chat."scripted"]\nprompt = 1000\ncompletion = 1000\n', encoding="utf-8"
    )


def document_of(outcome: Outcome) -> dict[str, object] | None:
    """Return what a start wrote as JSON; None for a failed one or one of several documents."""
    if not outcome.out or outcome.out.startswith('{"type'):
        return None
    document: dict[str, object] = json.loads(outcome.out)
    return document
