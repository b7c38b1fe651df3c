"""``judgetree eval``: measures systems over question-answer data sets."""

from __future__ import annotations

import typer

from .calibrate import calibrate
from .compare import compare
from .fetch import fetch
from .metrics import metrics
from .plan import plan
from .ragas import ragas
from .record import record
from .report import report
from .run import run
from .score import score
from .submission import submission

eval_app = typer.Typer(no_args_is_help=True)
for command in (calibrate, fetch, ragas, score, run, record, report, compare, submission, metrics, plan):
    eval_app.command(command.__name__)(command)
