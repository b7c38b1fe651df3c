"""``judgetree replay``: plays policies and budgets on a recording; only readers that are asked for call a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...graphs.config.rag_config import RagConfig
from ...modules.config.models import CacheMode
from ...modules.config.reading import Evidence
from ...modules.errors import SettingsError, needs_extra
from ..terminal.terminal import agrees, busy, counting_bar, progress_bar, say, width, write_json, write_result
from .config_options import takes
from .options import Json, RunFolder

if TYPE_CHECKING:
    from ...evaluation.replay.outcome import Replay
    from ...evaluation.replay.readers import ReplayReaders

_PLAYED = (
    "stop",
    "evidence",
    "evidence_tokens",
    "evidence_ranker",
    "max_rec_depth",
    "width",
    "llm",
    "thinking",
    "strategy",
)
"""Keys that a replay can play otherwise than they were recorded, or that its readers need."""


@takes(RagConfig, only=_PLAYED)
def replay(  # noqa: PLR0913 - one parameter an option
    run: RunFolder,
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="breadth, wider, mcts:c=1.4, oracle_order, …; may be repeated; default all."),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="N,N", help="Budgets: model calls of a question's tree.")
    ] = "8,16,32,60",
    judge: Annotated[
        str,
        typer.Option(
            metavar="noisy:auc=.8", help="Replace the verdicts by those of a simulated judge; default: as recorded."
        ),
    ] = "",
    baseline: Annotated[str, typer.Option(metavar="NAME", help="What the others are compared with; the first.")] = "",
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel="Files", help="A row for each question, policy and budget."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", rich_help_panel="Files", help="Table, plots and words as a page that needs no network."
        ),
    ] = None,
    spreadsheet: Annotated[
        bool,
        typer.Option("--spreadsheet", rich_help_panel="Files", help="Write --csv so that no text runs as a formula."),
    ] = False,
    plots: Annotated[
        Path | None, typer.Option(metavar="FOLDER", rich_help_panel="Files", help="Write the plots as SVG and PDF.")
    ] = None,
    answer: Annotated[
        bool,
        typer.Option(
            "--answer",
            rich_help_panel="Answers",
            help="Let a model answer from what each tree shows its readers: EM and F1.",
        ),
    ] = False,
    max_calls: Annotated[
        int | None, typer.Option(min=1, metavar="N", rich_help_panel="Answers", help="Stop before it pays more calls.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(metavar="USD", rich_help_panel="Answers", help="Stop before it pays more dollars.")
    ] = None,
    cache: Annotated[CacheMode, typer.Option(rich_help_panel="Answers", help="How its calls are kept.")] = "write",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", rich_help_panel="Answers", help="Do not ask before its calls.")
    ] = False,
    as_json: Json = False,
    config: RagConfig,
) -> None:
    """Compare policies on a recording of `judgetree eval record`; without --answer no model is called.

    What --answer costs at most is said before; what the cache has costs nothing.

    Examples:
        judgetree replay runs/recording --html replay.html
    """
    with busy(), needs_extra("eval"):
        from ...evaluation.record_and_replay import replay_recording
        from ...evaluation.replay.policies_table import replay_text
        from ...evaluation.replay.readers import ReplayReaders
        from ...evaluation.replay.replays import POLICIES

    with counting_bar("questions") as show:
        played = replay_recording(
            run,
            policies=tuple(policy or POLICIES),
            budgets=_budgets(budget),
            judge=judge,
            stop=config.stop,
            **config.part(Evidence).model_dump(),
            depth=config.given.get("max_rec_depth"),
            width=config.width,
            baseline=baseline,
            keep_trees=answer,
            on_progress=lambda done, total: show(done, total, ""),
        )
    if answer:
        readers = ReplayReaders(
            llm=config.llm,
            thinking=config.thinking,
            strategy=config.strategy,
            max_calls=max_calls,
            max_cost=max_cost,
            cache=cache,
        )
        played = _answered(played, readers, yes=yes)
    _write_files(played, csv=csv, spreadsheet=spreadsheet, html=html, plots=plots)
    if as_json:
        write_json(played.to_document())
    else:
        write_result(replay_text(played, width()))
    if played.reading is not None and played.reading.failed:
        raise typer.Exit(1)


def _answered(played: Replay, readers: ReplayReaders, *, yes: bool) -> Replay:
    from ...evaluation.record_and_replay import answer_replay, replay_cost
    from ...graphs.drawing.words import count_of

    cost = replay_cost(played, readers)
    tokens = f"{cost.usage['prompt_tokens']:,} + {cost.usage['completion_tokens']:,} tokens"
    shown = f"show{'s' if cost.trees == 1 else ''} {count_of(cost.contexts, 'context')}"
    say(
        f"{count_of(cost.trees, 'tree')} {shown}: at most "
        f"{count_of(cost.usage['llm_calls'], 'call')}, about {tokens}, cost {cost.cost}."
    )
    if not yes and not agrees("Ask the readers?"):
        raise typer.Exit
    with progress_bar() as on_setup, counting_bar("questions answered") as show:
        return answer_replay(played, readers, on_progress=lambda done, total: show(done, total, ""), on_setup=on_setup)


def _write_files(played: Replay, *, csv: Path | None, spreadsheet: bool, html: Path | None, plots: Path | None) -> None:
    from ...evaluation.papers.files import save_plots
    from ...evaluation.replay.replay_page import draw_replay
    from ...evaluation.replay.replay_plots import replay_plots
    from ...evaluation.rows.csv_tables import csv_of
    from ...modules.storage.atomic import write_atomic

    if csv is not None:
        write_atomic(csv, csv_of(played.rows, spreadsheet=spreadsheet))
    if html is not None:
        write_atomic(html, draw_replay(played))
    if plots is not None:
        save_plots(replay_plots(played.summary), plots)


def _budgets(given: str) -> tuple[int, ...]:
    try:
        budgets = tuple(dict.fromkeys(int(each) for each in given.split(",")))
    except ValueError:
        budgets = ()
    if not budgets or min(budgets) < 1:
        raise SettingsError(f"--budget {given!r} is not allowed. Give whole numbers from 1 on, such as 8,16,32,60.")
    return budgets
