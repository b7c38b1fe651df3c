"""``judgetree demo``: indexes the example corpus, asks a two-step question, and shows answer and tree."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...graphs.config.rag_config import RagConfig
from ...modules.errors import LoadingError, SettingsError
from ..terminal.exit_status import FAILED
from ..terminal.terminal import busy, progress_bar, say
from .ask import SearchChoice, ask_and_watch, say_outcome

if TYPE_CHECKING:
    from ...evaluation.datasets.standards_dialogues import Dialogue
    from ...evaluation.datasets.standards_qa import Question
    from ...graphs.rag.result import RagResult
    from ...modules.settings import Settings
    from ..terminal.files import TreeFiles

QUESTION_ID = "en-2hop-02"
COLLECTION = "judgetree_demo"
CORPUS, QUESTIONS = "standards", "standards_qa.jsonl"


@dataclass(frozen=True, kw_only=True)
class DemoData:
    """Corpus, questions and dialogues of the demo."""

    corpus: Path
    questions: tuple[Question, ...]
    dialogues: tuple[Dialogue, ...] = ()

    @property
    def question(self) -> Question:
        """The question of the demo."""
        return next(row for row in self.questions if row.id == QUESTION_ID)


def demo(
    scripted: Annotated[bool, typer.Option("--scripted", help="Play the model from a script: quick, no key.")] = False,
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the example corpus is.")] = Path("data"),
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where tree.svg and tree.html go.")] = Path(
        "judgetree-demo"
    ),
) -> None:
    """Index the example corpus and ask it a question that takes two steps.

    Examples:
        judgetree demo
        judgetree demo --scripted
    """
    with busy():
        from ...modules.llm.factory import is_local

    found = find_data(data)
    files = _picture_files(out)
    with _model(found, scripted=scripted) as settings:
        _index(found.corpus, settings)
        # On this machine's processor a call takes seconds, and this question needs one level.
        choice = SearchChoice(
            collection=COLLECTION, config=RagConfig(max_rec_depth=1) if is_local(settings.llm_spec) else RagConfig()
        )
        result = ask_and_watch(found.question.question, choice, settings)
    is_answered_right = _judge(result, found.question)
    say_outcome(result)
    files.write(result.tree)
    if not is_answered_right or result.judging_failed:
        raise typer.Exit(FAILED)


def find_data(folder: Path) -> DemoData:
    """Find the corpus in a folder and load its questions and dialogues.

    Raises:
        LoadingError: The folder lacks them; they come with the source, not with the installed package.
    """
    with busy():
        from ...evaluation.datasets.standards_qa import load_standards_qa
        from ..scripted.server import find_dialogues

    corpus, questions = folder / CORPUS, folder / QUESTIONS
    if not corpus.is_dir() or not questions.is_file():
        raise LoadingError(
            f"The demo needs {corpus} and {questions}, which come with judgetree's source. "
            "Run it in a checkout, or name that folder with --data."
        )
    rows = tuple(load_standards_qa(questions))
    if not any(row.id == QUESTION_ID for row in rows):
        raise LoadingError(
            f"{questions} has no row {QUESTION_ID!r}, which the demo asks. Take the one of the checkout."
        )
    return DemoData(corpus=corpus, questions=rows, dialogues=tuple(find_dialogues(beside=questions)))


def is_right(answer: str, question: Question) -> bool:
    """Return whether the answer contains the gold answer or an alias, up to case and white space."""
    return any(_folded(gold) in _folded(answer) for gold in (question.answer, *question.aliases))


@contextmanager
def _model(data: DemoData, *, scripted: bool) -> Iterator[Settings]:
    from ...modules.settings import load_settings
    from ..scripted.server import ScriptedServer

    if not scripted:
        settings = load_settings()
        say(f"model: {settings.llm_spec}")
        yield settings
        return
    with ScriptedServer(data.questions, dialogues=data.dialogues, prompts=load_settings().prompts) as server:
        say("model: a script that knows the example questions (no model is called)")
        yield load_settings(llm=f"{server.base_url}#scripted", judge_llm="")


def _index(corpus: Path, settings: Settings) -> None:
    with busy():
        from ...graphs.drawing.words import count_of
        from ...modules.index.factory import open_index

    say(f"indexing {corpus} …")
    started = time.monotonic()
    with progress_bar() as show, open_index(COLLECTION, settings, data_path=corpus, on_progress=show) as index:
        report = index.get_index_done(prune=True)
    files = count_of(len(report.added) + len(report.changed) + report.unchanged, "file")
    say(f"{files}, {count_of(report.chunks, 'chunk')} in {time.monotonic() - started:.1f} s", style="dim")


def _judge(result: RagResult, question: Question) -> bool:
    """Print the number of sub-runs and whether the answer is right; returns whether it is."""
    from ...graphs.drawing.words import count_of

    if not result.answer:
        return False
    sub_runs = result.tree.sub_runs
    say(f"It asked {count_of(sub_runs, 'further question')}." if sub_runs else "It did not ask on.", style="bold")
    if is_right(result.answer, question):
        say("The answer is right.", style="bold green")
        return True
    say(f"The answer is wrong: the documents say {question.answer!r}.", style="bold red")
    return False


def _picture_files(out: Path) -> TreeFiles:
    from ..terminal.files import TreeFiles

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--out: {out} cannot be made ({error.strerror}). Name another folder.") from error
    files = TreeFiles(targets={"svg": str(out / "tree.svg"), "html": str(out / "tree.html")})
    files.check(stdout_is_free=False)
    return files


def _folded(text: str) -> str:
    return "".join(text.casefold().split())
