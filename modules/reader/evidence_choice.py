"""The choice of the chunks that a reader sees, by their verdicts and within a limit of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ..calls.tokens import text_tokens
from ..config.reading import Evidence
from .evidence import render_evidence
from .evidence_selection import select_evidence

if TYPE_CHECKING:  # what imports the options stays light
    from langchain_core.documents import Document

T = TypeVar("T")


class EvidenceChoice(Evidence):
    """Chooses the chunks of a query that its reader sees, and their order.

    With the default, useful chunks stand by rank, the best retrieval score first. With any other value, or a limit,
    chunks stand by verdict (2, 1, unknown, 0), and those of equal verdict by rank, so that a limit leaves out the least
    useful ones. Chunks that a ranker chose stand in this order too. If nothing fits, the first chunk is shown.

    >>> EvidenceChoice(evidence="sufficient").chosen([0, 1, 2, 2], score=int, tokens=lambda _: 200)
    [2, 2]
    >>> EvidenceChoice(evidence_tokens=500).chosen([0, 1, 2, 2], score=int, tokens=lambda _: 200)
    [2, 2]
    """

    def fingerprint(self) -> dict[str, str]:
        """Return the keys that differ from their defaults."""
        parts: dict[str, str] = {} if self.evidence == "useful" else {"evidence": self.evidence}
        parts |= {} if self.evidence_tokens is None else {"evidence_tokens": str(self.evidence_tokens)}
        return parts if self.evidence_ranker is None else parts | {"evidence_ranker": self.evidence_ranker}

    def of_chunks(self, chunks: Sequence[Document]) -> list[Document]:
        """Return the chunks that the reader sees, in the order of the evidence.

        Args:
            chunks: The chunks of a query by rank, with their ``score`` in the metadata.
        """
        return self.chosen(
            chunks,
            score=lambda chunk: chunk.metadata.get("score"),
            tokens=passage_tokens,
            text=lambda chunk: chunk.page_content,
        )

    def chosen(
        self,
        chunks: Sequence[T],
        *,
        score: Callable[[T], int | None],
        tokens: Callable[[T], int],
        text: Callable[[T], str] = str,
    ) -> list[T]:
        """Return those of ``chunks``, given by rank, that the reader sees, in the order of the evidence.

        ``score`` is 0, 1, 2 or None; ``tokens`` is asked only under a limit, ``text`` only by a ranker.
        """
        shown = self._by_verdict(chunks, score)
        if self.evidence == "useful" and self.evidence_tokens is None:
            return shown
        shown.sort(key=lambda chunk: -_worth(score(chunk)))  # stable: equal verdicts stay by rank
        if self.evidence_tokens is None:
            return shown
        if self.evidence_ranker is None:
            return self._fitting(shown, self.evidence_tokens, tokens)
        worths, sizes = [_worth(score(chunk)) for chunk in shown], [tokens(chunk) for chunk in shown]
        selected = select_evidence(
            self.evidence_ranker, [text(chunk) for chunk in shown], worths, sizes, self.evidence_tokens
        )
        return [shown[place] for place in selected] or shown[:1]

    def _by_verdict(self, chunks: Sequence[T], score: Callable[[T], int | None]) -> list[T]:
        if self.evidence == "sufficient" and (sufficient := [chunk for chunk in chunks if score(chunk) == 2]):
            return sufficient
        useful = [chunk for chunk in chunks if score(chunk) != 0] if self.evidence != "all" else []
        return useful or list(chunks)

    @staticmethod
    def _fitting(chunks: Sequence[T], most: int, tokens: Callable[[T], int]) -> list[T]:
        left, fitting = most, list(chunks[:1])
        left -= sum(map(tokens, fitting))
        for chunk in chunks[1:]:
            if (size := tokens(chunk)) <= left:
                fitting.append(chunk)
                left -= size
        return fitting


USEFUL = EvidenceChoice()
"""The default."""


def passage_tokens(chunk: Document) -> int:
    """Estimate the tokens of a chunk in the evidence, its source and answered sub-questions included."""
    return text_tokens(f"{render_evidence([chunk])}\n\n0")  # what parts it from the next, and a digit of its number


def _worth(score: int | None) -> float:
    return 0.5 if score is None else score
