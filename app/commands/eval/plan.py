"""``judgetree eval plan``: how many questions a comparison takes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....modules.errors import needs_extra
from ...terminal.terminal import busy, write_json, write_result
from ..options import Json
from .compare import Baseline

if TYPE_CHECKING:
    from ....evaluation.question_plan import QuestionPlan

_PER_CENT = 100


def plan(
    first: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="A first run over some dozens of questions.")
    ] = None,
    *,
    difference: Annotated[
        float, typer.Option(min=0.1, max=100, metavar="POINTS", help="The difference of EM that is to be shown.")
    ] = 10.0,
    discordance: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=100,
            metavar="PERCENT",
            help="Without a run: questions on which exactly one of two systems is right.",
        ),
    ] = None,
    comparisons: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Comparisons that are corrected together; those of the run, or 1."),
    ] = None,
    baseline: Baseline = None,
    as_json: Json = False,
) -> None:
    """Say how many questions show a true difference of EM four times out of five. Makes no calls.

    Examples:
        judgetree eval plan runs/first --difference 10
    """
    with busy(), needs_extra("eval"):
        from ....evaluation.question_plan import plan_questions

    plans = plan_questions(
        first,
        difference=difference / _PER_CENT,
        discordance=None if discordance is None else discordance / _PER_CENT,
        comparisons=comparisons,
        baseline=baseline,
    )
    if as_json:
        write_json([asdict(each) for each in plans])
    else:
        write_result("\n".join(map(_sentence, plans)))


def _sentence(plan: QuestionPlan) -> str:
    among = f" among {plan.comparisons:,} comparisons" if plan.comparisons > 1 else ""
    needed = f"{_questions(plan.questions)} show a difference of {_PER_CENT * plan.difference:g} points of EM{among}"
    if not plan.seen:
        return f"If exactly one system is right on {plan.discordance:.0%} of the questions, {needed}."
    if plan.discordance is None and plan.questions is None:
        return f"{plan.a} and {plan.b}: too few of {plan.seen:,} questions differ to say how many more it takes."
    if plan.discordance is None:
        return f"{plan.a} and {plan.b}: by the spread of {plan.seen:,} questions with dialogues or repeats, {needed}."
    return (
        f"{plan.a} and {plan.b}: exactly one is right on {plan.discordance:.0%} of {plan.seen:,} questions (95 % "
        f"interval {plan.discordance_low:.0%} to {plan.discordance_high:.0%}). So {needed}, as far as that interval "
        f"goes {_questions(plan.questions_low)} to {_questions(plan.questions_high)}."
    )


def _questions(count: int | None) -> str:
    return "more than 100,000 questions" if count is None else f"{count:,} questions"
