"""Keys that limit a search, and say how it widens."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from ...modules.config.config import Config, Key, as_fault
from ..search.depth import MAX_REC_DEPTH
from ..search.expansion_rule import expansion_rule
from ..search.sharing_rule import sharing_rule

_Whole = Annotated[int, Field(strict=True)]
_Amount = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class Limits(Config):
    """Limits of a question

    >>> limits = Limits(max_rec_depth=1)
    >>> limits.max_llm_calls
    60
    """

    max_rec_depth: Annotated[
        _Whole,
        Field(ge=0, le=MAX_REC_DEPTH),
        Key(needs=("depth",), common=True, per_question=True, in_requests=True, older_flag="--max-depth", metavar="N"),
    ] = 3
    """Levels of sub-questions below the root, or rounds after the first; 0 judges without asking sub-questions."""
    max_llm_calls: Annotated[_Whole, Field(ge=1), Key(per_question=True, in_requests=True, metavar="N")] = 60
    """Most chat calls of one question's whole tree, answers included."""
    judge_leaves: Annotated[bool, Key(needs=("judge",), per_question=True)] = True
    """Whether chunks of the deepest level are judged too, so that the reader sees only useful ones."""
    width: Annotated[
        _Whole | None, Field(ge=1), Key(needs=("sub_questions",), per_question=True, in_requests=True, metavar="N")
    ] = None
    """Most sub-questions that a round of the search grants; else no limit."""
    max_sub_runs: Annotated[
        _Whole | None, Field(ge=0), Key(needs=("sub_questions",), per_question=True, in_requests=True, metavar="N")
    ] = None
    """Most sub-questions of one question's whole tree; else no limit."""
    max_tree_tokens: Annotated[_Whole | None, Field(ge=1), Key(per_question=True, in_requests=True, metavar="N")] = None
    """Most prompt and completion tokens of one question's whole tree; else no limit."""
    max_tree_cost_usd: Annotated[
        _Amount | None, Key(per_question=True, in_requests=True, older_flag="--max-tree-cost", metavar="USD")
    ] = None
    """Most US dollars of one question's whole tree, where every model needs a price; else no limit."""
    max_tree_seconds: Annotated[_Amount | None, Key(per_question=True, in_requests=True, metavar="S")] = None
    """Most seconds of one question's search, in each run of its thread; else no limit. Then what is open is cancelled
    within a second, and the root is answered from what is there."""
    sharing: Annotated[str, Key(needs=("sub_questions",), per_question=True, metavar="RULE")] = "off"
    """Whether a sub-question that the tree, or an earlier search of its conversation, has asked already takes that
    answer: equal, similar:at=0.95 (by embeddings too), or off."""
    expansion: Annotated[
        str,
        Key(needs=("sub_questions",), per_question=True, older_flag="--expand", metavar="RULE"),
    ] = "sub_question"
    """How useful chunks widen the search: sub_question, link (the passages that they are linked with are judged for the
    same query, after judgetree index --graph links) or both, with parameters as both:neighbours=5,hops=2."""

    @field_validator("sharing")
    @classmethod
    def _check_sharing(cls, spec: str) -> str:
        with as_fault():
            sharing_rule(spec)
        return spec

    @field_validator("expansion")
    @classmethod
    def _check_expansion(cls, spec: str) -> str:
        with as_fault():
            expansion_rule(spec)
        return spec
