"""The outcome of a replay: tables, and what they say in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from ...graphs.drawing.words import count_of
from ..reports.frames import records_of
from .readers import ReadingSummary
from .recording import SearchRecording
from .shown import ShownTrees
from .summary import is_shown


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The outcome of a replay."""

    rows: pd.DataFrame
    """A row for each question, policy and budget; see ``replay.replays.replay``."""
    summary: pd.DataFrame
    """A row for each budget and policy; see ``replay.summary.summarize``."""
    baseline: str
    """Policy that the others are compared with."""
    of: Mapping[str, object]
    """Name of the recording, questions, judge, stop, depth, width, and ``recorded``: its depth and tries.

    ``unfinished`` questions are left out; ``unknown_verdicts`` are those that neither stop nor expand a search;
    ``unwritten`` are chunks that miss further questions.
    """
    recording: SearchRecording = field(repr=False)
    trees: Mapping[str, ShownTrees] = field(repr=False, default_factory=dict)
    """What readers are shown, by question; empty unless it was kept."""
    reading: ReadingSummary | None = None
    """What readers were paid for; None if none were asked."""

    @property
    def policies(self) -> Sequence[str]:
        """The policies, in the order in which they were given."""
        return list(dict.fromkeys(self.summary["policy"]))

    def format_coverage(self) -> list[str]:
        """Say how far each policy stayed within the recording."""
        left = self.summary[self.summary["coverage"] < 1]
        if left.empty:
            return ["No policy asked what was not recorded."]
        words = []
        for policy, rows in left.groupby("policy", sort=False):
            worst = rows.loc[rows["coverage"].idxmin()]
            words.append(
                f"{policy} left the recording in {100 * (1 - worst['coverage']):.0f} % of the questions at "
                f"{worst['budget']} calls; what it asked there counts as having found nothing."
            )
        return [*words, f"Recorded were {self.of['recorded']}: `judgetree eval record` with more covers more."]

    def format_missing(self) -> list[str]:
        """Say which questions the recording lacks, because calls failed or it was stopped."""
        words = {
            "without_gold": ("question", "left out: no gold documents are known, by which to count."),
            "unfinished": ("question", "left out: not all of it is recorded."),
            "unknown_verdicts": ("recorded verdict", "unknown, since the judge failed; such a chunk is not asked on."),
            "unwritten": ("chunk", "without further questions, since a call failed."),
        }
        counted = [(self.of.get(name), noun, words) for name, (noun, words) in words.items()]
        said = [
            f"{count_of(count, noun)} {words}" for count, noun, words in counted if isinstance(count, int) and count
        ]
        missing = any(self.of.get(name) for name in words if name != "without_gold")
        return [*said, "The same `judgetree eval record` asks for what is missing."] if missing else said

    def format_gains(self) -> list[str]:
        """Say which policies differ from the baseline in evidence complete, and in EM where readers answered."""
        if len(self.policies) < 2:
            return []
        scores = {"complete": "evidence complete", **({"em": "EM"} if "em_gain" in self.summary else {})}
        return [words for score, name in scores.items() for words in self._format_gain(score, name)]

    def to_document(self) -> dict[str, object]:
        """Return summary, words and settings as plain data for ``json.dumps``."""
        return {
            **self.of,
            "baseline": self.baseline,
            "summary": records_of(self.summary),
            "words": self.words(),
            "reading": self.reading.to_document() if self.reading else None,
        }

    def words(self) -> list[str]:
        """Return the findings as sentences."""
        return [
            *self.format_gains(),
            *self.format_coverage(),
            *self.format_missing(),
            *(self.reading.words() if self.reading else ()),
        ]

    def _format_gain(self, score: str, name: str) -> Iterator[str]:
        prefix = "" if score == "complete" else f"{score}_"
        shown = [row for _, row in self.summary.iterrows() if is_shown(row, score)]
        for row in shown:
            gain, low, high, p = (row[f"{prefix}{end}"] for end in ("gain", "gain_low", "gain_high", "p"))
            yield (
                f"At {row['budget']} calls {row['policy']} has {100 * abs(gain):.1f} points "
                f"{'more' if gain > 0 else 'less'} {name} than {self.baseline} "
                f"({100 * low:+.1f} to {100 * high:+.1f}, p = {p:.2g} after Holm's correction)."
            )
        if not shown:
            yield f"No difference from {self.baseline} in {name} was shown at any budget."
