"""What a batch run of the tests works with: a scripted model, settings of its own, and a run directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.runs.batch_run import RunOptions, run_experiment
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.runner import Progress, RunSummary
from judgetree.modules.settings import Settings


@dataclass(frozen=True, kw_only=True)
class RunBench:
    """An experiment that can be changed and run."""

    server: ScriptedServer
    settings: Settings
    experiment: Experiment
    out: Path

    def more(self, **changes: object) -> Experiment:
        return Experiment.model_validate({**self.experiment.model_dump(), **changes})

    def changed(self, **changes: object) -> Self:
        return replace(self, experiment=self.more(**changes))

    def run(
        self,
        options: RunOptions | None = None,
        out: Path | None = None,
        settings: Settings | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        **changes: object,
    ) -> RunSummary:
        """By default the experiment as it is, in the bench's directory and with its settings."""
        return run_experiment(
            self.more(**changes),
            out or self.out,
            options=options or RunOptions(),
            settings=settings or self.settings,
            on_progress=on_progress,
        )

    def requests(self) -> int:
        """Requests to the model so far."""
        return sum(self.server.requests.values())
