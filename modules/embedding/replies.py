"""Replies of embedding endpoints, and the check of their vectors."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from ..llm.wire.error_words import ReportedError, error_in_text

MAX_DIMENSION = 32_768
"""Longest vector that is accepted; Milvus takes none that is longer."""
_MOST_TOKENS = 2**31
_FLOAT32_MAX = 3.4e38


class _Item(BaseModel):
    """A vector of a reply."""

    index: int | None = None
    embedding: Annotated[
        list[Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-_FLOAT32_MAX, le=_FLOAT32_MAX)]],
        Field(min_length=1, max_length=MAX_DIMENSION),
    ]


class EmbeddingsReply(BaseModel):
    """A reply, as far as it is read."""

    data: list[_Item]
    usage: object = None

    @property
    def total_tokens(self) -> int | None:
        """Tokens that the endpoint counted; None if it names no possible number."""
        tokens = self.usage.get("total_tokens") if isinstance(self.usage, dict) else None
        return tokens if type(tokens) is int and 0 < tokens < _MOST_TOKENS else None

    def vectors(self, count: int) -> list[list[float]]:
        """Return the vectors in the order of the texts.

        Raises:
            ValueError: There are not ``count``, their indexes are no order, their lengths differ, or one is all zeros.
        """
        if len(self.data) != count:
            raise ValueError(f"{len(self.data)} vectors came back for {count} texts")
        places = [place if item.index is None else item.index for place, item in enumerate(self.data)]
        if sorted(places) != list(range(count)):
            raise ValueError("the indexes of its vectors are not those of the texts")
        ordered = [item.embedding for _, item in sorted(zip(places, self.data, strict=True), key=lambda pair: pair[0])]
        if len(lengths := {len(vector) for vector in ordered}) > 1:
            raise ValueError(f"its vectors have different lengths: {', '.join(map(str, sorted(lengths)[:5]))}")
        if not all(map(any, ordered)):
            raise ValueError("a vector is all zeros, which is near to nothing and has no angle")
        return ordered


def parse_reply(body: bytes) -> EmbeddingsReply:
    """Read a reply, whose vectors have finite numbers of 32 bits.

    Raises:
        ReportedError: It reports an error.
        ValueError: It has another form.
    """
    try:
        return EmbeddingsReply.model_validate_json(body)
    except ValidationError as error:
        if reported := error_in_text(body):
            raise ReportedError(reported) from None
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, fault["loc"])) or "the whole"
        raise ValueError(f"its reply is no list of embeddings ({where}: {fault['msg'][:100]})") from None
