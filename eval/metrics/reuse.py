"""Whether a turn reuses what earlier ones have found, and whether that did harm."""

from __future__ import annotations

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
