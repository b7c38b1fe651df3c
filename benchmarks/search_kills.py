"""Bushy searches killed at random moments and resumed, against the same searches unbroken."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.database_servers import postgres_server, redis_server
from tests.graphs.killed_search import search

from .measurement import Row

KILLS = 20
TOPK = 4
REPO = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Killed:
    """What came of a search that was killed and resumed."""

    kills: int
    is_same: bool
    """Whether grants, skips and tries are those of the unbroken search."""
    calls: int
    """Calls of the unbroken search."""
    made_again: int
    in_flight: int
    """Most calls that can have been in flight at the kills."""


def killed(urls: tuple[str, str], policy: str, width: int, folder: Path, *, seed: int = 3) -> Killed:
    """Kill a search ``KILLS`` times, if it lasts so long, and resume it; the unbroken one has the first URL."""
    whole = folder / "whole"
    started = time.perf_counter()
    unbroken = search(urls[0], policy, width, whole)
    lasts_s = time.perf_counter() - started
    parts, rng, kills = folder / "parts", random.Random(seed), 0
    command = [sys.executable, "-m", "tests.graphs.killed_search", urls[1], policy, str(width), str(parts)]
    for _ in range(KILLS):
        with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                process.wait(timeout=rng.uniform(0, lasts_s / 3))
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
    resumed = search(urls[1], policy, width, parts)
    made = [len(path.read_text().splitlines()) for path in (parts, whole)]
    return Killed(
        kills=kills,
        is_same=resumed == unbroken,
        calls=made[1],
        made_again=made[0] - made[1],
        in_flight=kills * TOPK * width,
    )


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, tuple[str, str]]]:
    """Give two fresh stores of each kind."""
    with ExitStack() as servers:
        names = ("whole", "parts")
        urls = {"SQLite": tuple(f"sqlite:///{folder / name}.sqlite" for name in names)}
        urls["PostgreSQL"] = tuple(servers.enter_context(postgres_server()) for _ in names)
        urls["Redis"] = tuple(servers.enter_context(redis_server(folder / f"redis-{name}")).url for name in names)
        yield {kind: (first, second) for kind, (first, second) in urls.items()}


def measure() -> list[Row]:
    """Measure policies with and without further tries, widths 1 and 3, on each kind of store."""
    rows = []
    for policy in ("best_first", "wider:tries=3,least=1"):
        for width in (1, 3):
            with tempfile.TemporaryDirectory() as folder, stores(Path(folder)) as urls:
                for kind, pair in urls.items():
                    part = Path(folder) / kind
                    part.mkdir()
                    came = killed(pair, policy, width, part)
                    again = f"{came.made_again} of {came.calls} calls made again"
                    rows.append(
                        Row(
                            f"Bushy search, {policy}, width {width}, {kind}: killed (-9) at random moments and resumed",
                            f"{came.kills} kills; {'the same' if came.is_same else 'another'} tree; {again}",
                            f"the same tree; ≤ {came.in_flight}, in flight at the kills",
                            holds=came.is_same and came.made_again <= came.in_flight,
                            values=(came.made_again, came.is_same),
                        )
                    )
    again, same = zip(*(row.values for row in rows), strict=True)
    all_of_them = Row(
        "bushy searches killed (-9) at random moments and resumed: trees other than the unbroken one; calls made again",
        f"{len(same) - sum(same):.0f} of {len(rows)}; {min(again):.0f} to {max(again):.0f} a search",
        "0; at most those in flight at the kills",
        holds=all(row.holds for row in rows),
    )
    return [all_of_them, *rows]
