"""One change of a search tree: its values, and the rules of where it makes sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import get_args

from ...modules.errors import SettingsError
from ...modules.judge.contract import LONGEST_SUB_QUESTION, Score
from ...modules.llm.contract import ChatLLM
from ...modules.llm.langchain_chat import LangChainModel
from ...modules.storage.texts import check_text
from ..config.given_keys import GivenKeys
from ..search.expansion_rule import expansion_rule, follows_links
from ..tree.nodes import ChunkNode
from ..tree.places import Place


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a fork changes: of a chunk its score and sub-question, or that it is there; of a query its search or model.

    >>> Change(score=2).described()
    {'score': '2'}
    """

    score: int | None = None
    """The verdict on the chunk: 2, 1 or 0."""
    next_query: str | None = None
    """The sub-question of the chunk, whose score is or becomes 1."""
    drop: bool = False
    """Whether the chunk is taken out, as if it had not been found."""
    topk: int | None = None
    """Chunks that the query, and new sub-questions below it, retrieve."""
    llm: str | ChatLLM | LangChainModel | None = None
    """Model that answers the query, and new sub-questions below it."""

    @property
    def overrides(self) -> GivenKeys:
        """The keys that the query has otherwise than the session."""
        return GivenKeys.of_question({"topk": self.topk, "llm": self.llm})

    def described(self) -> dict[str, str]:
        """Describe what is set by name, without secrets.

        Raises:
            SettingsError: A value has the wrong type.
        """
        of_chunk = {"score": self.score, "next_query": self.next_query}
        texts = {name: str(value) for name, value in of_chunk.items() if value is not None}
        return texts | ({"drop": ""} if self.drop else {}) | self.overrides.described()

    def check(self, place: Place, *, is_deepest: bool) -> None:
        """Check that a change fits its node.

        Raises:
            SettingsError: Nothing is changed, or the change does not fit the node.
        """
        if not self.described():
            raise SettingsError(f"Nothing is changed. Allowed: {', '.join(each.name for each in fields(self))}.")
        of_query = self.topk is not None or self.llm is not None
        if place.chunk is None or of_query:
            self._check_query(place, of_query=of_query)
        else:
            self._check_chunk(place, place.chunk, is_deepest=is_deepest)

    def check_links(self, expansion: str) -> None:
        """Check that the change needs no links to be followed anew, which a fork does not do.

        Raises:
            SettingsError: It searches again where links are followed, or asks on where no chunk does.
        """
        if self.topk is not None and follows_links(expansion):
            raise SettingsError(
                f"topk cannot be changed in a tree with expansion={expansion!r}: a fork follows no links of what it "
                "finds. Ask the question anew with another topk."
            )
        if self.next_query is not None and not expansion_rule(expansion).asks:
            raise SettingsError(
                f"next_query cannot be changed in a tree with expansion={expansion!r}: no chunk asks on there."
            )

    def _check_query(self, place: Place, *, of_query: bool) -> None:
        if place.chunk is not None:
            raise SettingsError(
                f"{place.name} is a chunk, and topk and llm belong to queries. "
                f"Name the query: {place.name.partition('#')[0]}."
            )
        if self.score is not None or self.next_query is not None or self.drop or not of_query:
            raise SettingsError(
                f"{place.name} is a query; score, next_query and drop belong to chunks. Name a chunk: {place.name}#1."
            )

    def _check_chunk(self, place: Place, chunk: ChunkNode, *, is_deepest: bool) -> None:
        if self.drop and (self.score is not None or self.next_query is not None):
            raise SettingsError("A chunk that is dropped has no score and asks nothing: set drop alone.")
        if self.score is not None and (isinstance(self.score, bool) or self.score not in get_args(Score)):
            raise SettingsError(f"score={self.score!r} is not allowed. Give 0, 1 or 2.")
        if self.next_query is not None:
            self._check_next_query(place, chunk, self.next_query, is_deepest=is_deepest)
        elif self.score is not None and self.score == chunk.score:
            raise SettingsError(f"{place.name} has the score {self.score} already: nothing would change.")

    def _check_next_query(self, place: Place, chunk: ChunkNode, next_query: str, *, is_deepest: bool) -> None:
        check_text("next_query", next_query, max_bytes=4 * LONGEST_SUB_QUESTION)
        if not next_query.strip():
            raise SettingsError("next_query is empty. Give a question, or score=0 for a chunk that asks nothing.")
        score = chunk.score if self.score is None else self.score
        if score != 1:
            raise SettingsError(
                f"Only a chunk with the score 1 asks on, and {place.name} has {score}: set score=1 too."
            )
        if self.score is None and next_query == chunk.next_query:
            raise SettingsError(f"{place.name} asks that already: nothing would change.")
        if is_deepest:
            raise SettingsError(f"{place.name} is on the deepest level (max_rec_depth), where chunks ask nothing.")
        if any(other.score == 2 for other in place.query.chunks if other is not chunk):
            raise SettingsError(f"Another chunk of that query scores 2, so that {place.name} asks nothing.")


def parsed_change(given: Mapping[str, str]) -> Change:
    """Read a change from texts by name, as the command line gives them.

    Raises:
        SettingsError: A name is unknown, or a number is none.
    """
    allowed = [each.name for each in fields(Change)]
    if unknown := sorted(given.keys() - set(allowed)):
        raise SettingsError(f"--set {unknown[0]}: there is no such setting. Allowed: {', '.join(allowed)}.")
    if given.get("drop"):
        raise SettingsError(f"--set drop={given['drop']} is not allowed. Give --set drop.")
    return Change(
        score=_number("score", given),
        next_query=given.get("next_query"),
        drop="drop" in given,
        topk=_number("topk", given),
        llm=given.get("llm"),
    )


def _number(name: str, given: Mapping[str, str]) -> int | None:
    if name not in given:
        return None
    try:
        return int(given[name])
    except ValueError:
        raise SettingsError(f"--set {name}={given[name]} is not allowed. Give a whole number.") from None
