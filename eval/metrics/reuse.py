"""What follow-up questions reuse of earlier turns, how often wrongly, and what a turn costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AnsweredTurn:
    """One turn that a conversation has answered."""

    number: int
    """Length of its path: 1 for a first turn, more for a follow-up."""
    from_history: bool = False
    """Whether it was answered from what earlier turns had found, without a search."""
    kept_chunks: int = 0
    """Chunks of earlier turns that its answer rests on beside what it searched for."""
    is_right: bool | None = None
    """Whether the answer is right; None where that cannot be told."""
    topic_switch: bool | None = None
    """Whether the question leaves the topic, as the data set says; None where it does not say."""
    calls: int = 0
    """Chat calls, those of its search tree included."""
    tokens: int = 0
    """Prompt and completion tokens of these calls."""

    @property
    def is_follow_up(self) -> bool:
        """Whether there was something to reuse."""
        return self.number > 1

    @property
    def reuses(self) -> bool:
        """Whether it is a follow-up that was answered from history or with a kept chunk."""
        return self.is_follow_up and (self.from_history or self.kept_chunks > 0)

    @property
    def reuses_wrongly(self) -> bool | None:
        """True where reuse did harm: answered from history, and the answer is wrong; or a kept chunk on a new topic.

        False where the turn reuses nothing, or neither is so. None where what it takes to tell is not known: of an
        answer from history, whether it is right; of a kept chunk, whether the topic is new.
        """
        if not self.reuses:
            return False
        harms: list[bool | None] = []
        if self.from_history:
            harms.append(None if self.is_right is None else not self.is_right)
        if self.kept_chunks > 0:
            harms.append(self.topic_switch)
        return True if True in harms else None if None in harms else False


@dataclass(frozen=True, kw_only=True)
class ReuseFigures:
    """Figures over turns; None where there is nothing to take a share or a mean of."""

    turns: int
    follow_ups: int
    reusing: int
    """Follow-ups that reuse something."""
    reuse_rate: float | None
    """``reusing`` by follow-ups, in [0, 1]; neither direction is better in itself."""
    wrong_reuse_rate: float | None
    """Share in [0, 1] of the reusing follow-ups that reuse wrongly, lower is better; those of which it cannot be told
    count for neither.
    """
    calls_per_turn: float | None
    """Mean over all turns, lower is better."""
    tokens_per_turn: float | None
    """Mean over all turns, lower is better."""


def reuse_figures(turns: Sequence[AnsweredTurn]) -> ReuseFigures:
    """The figures of turns of any conversations, in any order."""
    follow_ups = [turn for turn in turns if turn.is_follow_up]
    reusing = [turn for turn in follow_ups if turn.reuses]
    wrong = [turn.reuses_wrongly for turn in reusing]
    return ReuseFigures(
        turns=len(turns),
        follow_ups=len(follow_ups),
        reusing=len(reusing),
        reuse_rate=_ratio(len(reusing), len(follow_ups)),
        wrong_reuse_rate=_ratio(wrong.count(True), len(wrong) - wrong.count(None)),
        calls_per_turn=_ratio(sum(turn.calls for turn in turns), len(turns)),
        tokens_per_turn=_ratio(sum(turn.tokens for turn in turns), len(turns)),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
