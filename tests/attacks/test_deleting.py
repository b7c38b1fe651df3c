"""What a command deletes or overwrites, it says before, keeps in a dry run, and asks about in a terminal.

Every command of the command line is one that deletes (``DELETING``), or one of which ``KEEPING`` says why it does not.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgetree.evaluation.scoring.own_metric import MetricScore, MetricScorer, MetricStore
from judgetree.graphs.conversation.turn.state import new_conversation
from judgetree.graphs.conversation.turn.store import ConversationStore
from judgetree.graphs.threads.checkpoints import open_checkpointer
from judgetree.modules.settings import load_settings
from tests.app.conftest import CORPUS, Cli, every_command, write_corpus


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """A command that deletes something."""

    prepare: Callable[[Cli], None]
    """Makes what is deleted, in the working directory and the home folder."""
    command: tuple[str, ...]
    said: tuple[str, ...]
    """What it says before: what, and how much."""
    state: Callable[[Cli], object]
    """Returns what is there."""
    needs_yes: bool = False
    """Whether a script has to confirm it."""


def _index_two_folders(cli: Cli) -> None:
    write_corpus(Path("docs"), CORPUS)
    write_corpus(Path("more"), {"m.md": "More."})
    cli("index", "docs", "more", "-c", "papers").ok()
    Path("docs", "a.md").unlink()


def begin_two_conversations(_: Cli) -> None:
    """Save the conversations "old" and "older", which have no turn."""

    async def begin() -> None:
        async with open_checkpointer(load_settings().checkpoint_url) as saver:
            for name, year in (("old", 2020), ("older", 2019)):
                await ConversationStore(saver).begin(
                    new_conversation(name, name, f"{year}-01-01T00:00:00.000000+00:00")
                )

    asyncio.run(begin())


def _add_a_key(cli: Cli) -> None:
    cli("keys", "add", "ada", "-c", "notes").ok()


def _edit_prompts(_: Cli) -> None:
    Path("own.yaml").write_text("mine: 1\n")


def _collections(cli: Cli) -> object:
    return {each["name"]: (each["files"], each["chunks"]) for each in json.loads(cli("collections", "--json").ok().out)}


def _conversations(cli: Cli) -> object:
    return [each["name"] for each in json.loads(cli("conversations", "list", "--json").ok().out)]


def _keys(cli: Cli) -> object:
    return [each["revoked_at"] for each in json.loads(cli("keys", "list", "--json").ok().out)]


def _score(_: Cli) -> None:
    scorer = MetricScorer(metric="mine:grounded", source="", version="", lowest=0.0, highest=1.0)
    place = {"system": "judge", "question_id": "q", "repeat": 0, "attempt": 1}
    usage = dict.fromkeys(("calls", "cached_calls", "prompt_tokens", "completion_tokens", "embedded_texts"), 0)
    Path("run").mkdir()
    MetricStore(Path("run")).append(MetricScore(**place, scorer=scorer, value=1.0, problem="", **usage, seconds=0.0))


def _scores(_: Cli) -> object:
    return len(MetricStore(Path("run")).read())


def _prompts(_: Cli) -> object:
    return Path("own.yaml").read_text()


DELETING = {
    "index --prune": Deletion(
        prepare=_index_two_folders,
        command=("index", "docs", "-c", "papers", "--prune"),
        said=("1 file with 1 chunk from the collection papers", "not from the disk: a.md"),
        state=_collections,
    ),
    "index --prune-all": Deletion(
        prepare=_index_two_folders,
        command=("index", "docs", "-c", "papers", "--prune-all"),
        said=("2 files with 2 chunks from the collection papers", "a.md, more/m.md"),
        state=_collections,
        needs_yes=True,
    ),
    "index --remove": Deletion(
        prepare=_index_two_folders,
        command=("index", "-c", "papers", "--remove", "more/m.md", "--remove", "b.md"),
        said=("2 files with 2 chunks from the collection papers", "more/m.md, b.md"),
        state=_collections,
    ),
    "conversations delete": Deletion(
        prepare=begin_two_conversations,
        command=("conversations", "delete", "old"),
        said=("the conversation 'old', 0 turns with their search trees",),
        state=_conversations,
        needs_yes=True,
    ),
    "conversations expire": Deletion(
        prepare=begin_two_conversations,
        command=("conversations", "expire", "--days", "400"),
        said=("2 conversations with 0 turns",),
        state=_conversations,
    ),
    "eval score --remove": Deletion(
        prepare=_score,
        command=("eval", "score", "run", "--remove", "mine:grounded"),
        said=("1 score by mine:grounded in run",),
        state=_scores,
        needs_yes=True,
    ),
    "keys revoke": Deletion(
        prepare=_add_a_key,
        command=("keys", "revoke", "ada"),
        said=("of ada, granting notes, never used",),
        state=_keys,
    ),
}
OVERWRITING = {
    "prompts copy": Deletion(
        prepare=_edit_prompts,
        command=("prompts", "copy", "judge", "own.yaml", "--force"),
        said=("own.yaml, 8 bytes",),
        state=_prompts,
    ),
}
"""An option of these, which a script gives too, confirms it."""

_READS = "reads, and writes no more than the files that its options name"
_ADDS = "adds to what is there"
KEEPING = {
    **dict.fromkeys(("calls", "conversations draw", "conversations list", "conversations show", "diff"), _READS),
    **dict.fromkeys(
        ("doctor", "eval compare", "eval metrics", "eval plan", "eval report", "export", "graph show", "keys list"),
        _READS,
    ),
    **dict.fromkeys(("prompts diff", "prompts show", "config", "settings", "threads", "tree"), _READS),
    **dict.fromkeys(("ask", "explain", "fork", "keys add", "label", "replay"), _ADDS),
    **dict.fromkeys(("eval ragas", "eval run", "eval record"), _ADDS),
    "chat": "adds turns; /undo takes back the newest one, and says which",
    "collections": "renames a collection, to a name that is free",
    "conversations backfill": "gives a parent to turns without one; has --dry-run",
    "demo": "has a collection, files and a folder of its own",
    "eval calibrate": "makes a fit of a judge and model, which is replaced by the same command",
    "eval submission": "writes the files of a run anew, which replace their older ones",
    "eval fetch": "keeps what was fetched before",
    "new": "makes a folder, and refuses one that is there",
    "serve": "deletes old conversations if --expire-days says so, and logs how many",
    "trust": "takes a consent back with --revoke, which the same command gives again",
}


def names_of(deletions: dict[str, Deletion]) -> set[str]:
    return {name.partition(" --")[0] for name in deletions}


def test_every_command_is_one_that_deletes_or_one_that_does_not() -> None:
    commands = {words: command for words, command in every_command().items() if not hasattr(command, "commands")}
    deleting = names_of(DELETING) | names_of(OVERWRITING)
    assert set(commands) == deleting | set(KEEPING)
    assert deleting.isdisjoint(KEEPING)
    options = {
        words: {name for option in command.params for name in option.opts} for words, command in commands.items()
    }
    assert [words for words in deleting if "--dry-run" not in options[words]] == []
    assert [words for words in names_of(DELETING) if "--yes" not in options[words]] == []
    dangerous = {"--prune", "--prune-all", "--remove", "--branch", "--days", "--force", "--yes"}
    kept = {words: sorted(options[words] & dangerous) for words in KEEPING if options[words] & dangerous}
    assert kept == {
        "conversations show": ["--branch"],
        "eval compare": ["--force"],  # compares what should not be
        "eval run": ["--force"],  # asks again, and adds rows
        "explain": ["--yes"],  # pays for calls
        "replay": ["--yes"],
    }


class Typing(io.StringIO):
    """A terminal at which someone types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def here(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return tmp_path


@pytest.mark.parametrize("name", [*DELETING, *OVERWRITING])
def test_a_dry_run_says_what_and_how_much_and_deletes_nothing(name: str, here: Path, cli: Cli) -> None:
    deletion = {**DELETING, **OVERWRITING}[name]
    deletion.prepare(cli)
    before = deletion.state(cli)
    done = cli(*deletion.command, "--dry-run").ok()
    assert [text for text in deletion.said if text not in done.err and name != "conversations expire"] == []
    assert "would" in done.err
    assert deletion.state(cli) == before


@pytest.mark.parametrize("name", DELETING)
def test_a_terminal_is_asked_after_what_and_how_much(
    name: str, here: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    deletion = DELETING[name]
    deletion.prepare(cli)
    before = deletion.state(cli)
    monkeypatch.setattr(sys, "stdin", Typing("n\n"))
    refused = cli(*deletion.command)
    assert [text for text in deletion.said if text not in refused.err] == []
    assert "Nothing was deleted." in refused.err
    assert deletion.state(cli) == before
    monkeypatch.setattr(sys, "stdin", Typing("y\n"))
    cli(*deletion.command).ok()
    assert deletion.state(cli) != before


@pytest.mark.parametrize("name", [*DELETING, *OVERWRITING])
def test_a_script_confirms_what_it_may_not_mean(name: str, here: Path, cli: Cli) -> None:
    deletion = {**DELETING, **OVERWRITING}[name]
    deletion.prepare(cli)
    before = deletion.state(cli)
    if deletion.needs_yes:
        cli(*deletion.command).refused("add --yes to confirm")
        assert deletion.state(cli) == before
    done = cli(*deletion.command, *(["--yes"] if deletion.needs_yes else [])).ok()
    assert [text for text in deletion.said if text not in done.err] == []
    assert deletion.state(cli) != before


def test_a_prune_without_a_path_is_refused(here: Path, cli: Cli) -> None:
    _index_two_folders(cli)
    for option in ("--prune", "--prune-all"):
        cli("index", "-c", "papers", "--remove", "b.md", option).refused("give the PATH of a folder too")
    assert _collections(cli) == {"notes": (4, 4), "papers": (5, 5)}


def test_a_dry_run_of_an_index_shows_all_that_would_change_and_makes_nothing(here: Path, cli: Cli) -> None:
    _index_two_folders(cli)
    Path("docs", "b.md").write_text("Changed.")
    Path("docs", "new.md").write_text("New.")
    said = json.loads(cli("index", "docs", "-c", "papers", "--prune", "--dry-run", "--json").ok().out)
    assert (said["added"], said["changed"], said["removed"], said["dry_run"]) == (["new.md"], ["b.md"], ["a.md"], True)
    assert cli("index", "docs", "-c", "fresh", "--dry-run").ok().out.count("4 new") == 1
    assert _collections(cli) == {"notes": (4, 4), "papers": (5, 5)}
