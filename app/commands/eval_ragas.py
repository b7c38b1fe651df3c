"""``judgetree eval ragas``: the rows of a run, scored by a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ...evaluation.ragas.metrics import metrics_named
from ...modules.errors import needs_extra
from ...modules.llm.cache import CacheMode
from ..terminal.exit_status import FAILED, INTERRUPTED, OK
from ..terminal.terminal import counting_bar, progress_bar, say, write_json, write_result

if TYPE_CHECKING:
    from ...evaluation.score_with_ragas import RagasProgress, RagasSummary


def run_ragas(  # noqa: PLR0913 - one parameter an option
    folder: Path,
    *,
    metrics: str | None,
    systems: str | None,
    llm: str | None,
    embeddings: str | None,
    limit: int | None,
    with_sub_answers: bool,
    concurrency: int,
    cache: CacheMode,
    retry_failed: bool,
    as_json: bool,
) -> int:
    """Score, and tell what was done. 0 if every sample scored now has a score, 1 if the scoring of some failed.

    Raises:
        UserError: Something to mend, the extra ``eval`` not being installed among them; finished scores are kept.
    """
    chosen = metrics_named(metrics)
    with needs_extra("eval"):
        from ...evaluation.score_with_ragas import RagasOptions, score_run
    options = RagasOptions(
        metrics=chosen,
        systems=tuple(systems.replace(",", " ").split()) if systems is not None else None,
        llm=llm,
        embeddings=embeddings,
        limit=limit,
        with_sub_answers=with_sub_answers,
        concurrency=concurrency,
        cache=cache,
        retry_failed=retry_failed,
    )
    try:
        with progress_bar() as on_setup, _sample_bar() as on_progress:
            summary = score_run(folder, options, on_progress=on_progress, on_setup=on_setup)
    except KeyboardInterrupt:
        say(f"Stopped. What was scored is kept in {folder}; the same command goes on.")
        return INTERRUPTED
    if as_json:
        write_json({"run": str(folder), **asdict(summary)})
    else:
        write_result(_told(summary, folder))
    return FAILED if summary.failed else OK


def _told(summary: RagasSummary, folder: Path) -> str:
    lines = [
        f"{summary.scored} scored, {summary.failed} of them in vain, {summary.kept} kept from before, "
        f"{summary.not_applicable} do not apply: {folder}",
        f"{summary.calls} calls paid, {summary.cached_calls} from the cache, {summary.tokens} tokens",
    ]
    if summary.failed:
        lines.append("`--retry-failed` tries those again; the report's results.csv says why each was in vain.")
    lines.append(f"Next: judgetree eval report {folder}")
    return "\n".join(lines)


@contextmanager
def _sample_bar() -> Iterator[Callable[[RagasProgress], None]]:
    """What the scoring reports its samples to."""
    with counting_bar("samples") as show:
        yield lambda progress: show(
            progress.done, progress.total, f"{progress.failed} in vain" if progress.failed else ""
        )
