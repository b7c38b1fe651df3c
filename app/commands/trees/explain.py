"""``judgetree explain``: which chunks and sub-questions the answer of a search tree rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....graphs.config.rag_config import RagConfig
from ....modules.config.models import Models
from ....modules.errors import SettingsError
from ...terminal.terminal import agrees, busy, say, width, write_json, write_result
from ..config_options import takes
from ..options import Json
from .fork import session_of_thread

if TYPE_CHECKING:
    from ....graphs.forks.leaving_out import ExplainCost
    from ....modules.settings import Settings


@takes(RagConfig, only=tuple(Models.model_fields), pairs=False)
def explain(
    thread_id: Annotated[str, typer.Argument(metavar="THREAD_ID", help="A finished question.")],
    *,
    max_depth: Annotated[
        int | None,
        typer.Option(
            "--depth", min=0, metavar="N", help="Deepest level of queries to look at; 0: the root's evidence alone."
        ),
    ] = None,
    gold: Annotated[
        list[str] | None,
        typer.Option(metavar="ANSWER", help="A right answer: effects are then those on being right. May be repeated."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the effects into the tree.")] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the tree with them as an HTML page.")] = None,
    as_json: Json = False,
    config: RagConfig,
) -> None:
    """Ask again without each chunk and sub-question, and tell what is decisive, useless and harmful.

    What that costs at most is said before.

    Examples:
        judgetree explain THREAD_ID
    """
    with busy():
        from ....graphs.forks.explain import NoJudge
        from ....modules.parts import register_object
        from ....modules.settings import load_settings
        from ...terminal.files import TreeFiles

    settings = load_settings()
    files = TreeFiles.named(svg=svg, html=html)
    files.check(stdout_is_free=False)
    # What only searches call may be missing here by now.
    unneeded: dict[str, Any] = {"judge": register_object(NoJudge), "policy": "breadth", "stop": "set"}
    with session_of_thread(thread_id, config, settings, of_judges=unneeded) as session:
        cost = session.explain_cost(thread_id, max_depth=max_depth)
        if not cost.left_out:
            raise SettingsError(f"The reader of {thread_id!r} saw no chunk, so that nothing can be left out.")
        say(_format_cost(cost, settings))
        if not yes and not agrees("Ask again?"):
            raise typer.Exit
        with busy("answering"):
            explanation = session.explain(thread_id, max_depth=max_depth, gold=gold or ())
    if as_json:
        write_json(explanation.to_document())
    else:
        write_result(explanation.to_text(width=width()))
    files.write(explanation)


def _format_cost(cost: ExplainCost, settings: Settings) -> str:
    from ....graphs.drawing.words import count_of, format_usage
    from ....modules.calls.prices import load_prices, usage_by_model

    money = load_prices(settings.home).cost_of(usage_by_model(cost.records))
    return f"{count_of(cost.left_out, 'part')} to leave out: at most {format_usage(cost.usage)}, cost {money}."
