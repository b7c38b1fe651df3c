"""Keys of the reader, and of the evidence that it sees."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ..addresses import Address
from .answer_form import AnswerForm
from .config import Config, Key, after

AnswerStrategy = Literal["stuff", "map_reduce", "refine", "map_rerank"]
EvidenceKind = Literal["useful", "sufficient", "all"]
EvidenceRanker = Literal["mmr", "facility_location", "log_det"]


class Evidence(Config):
    """Evidence"""

    evidence: Annotated[EvidenceKind, Key(needs=("judge",))] = "useful"
    """Chunks that a reader sees. useful: those with score 1, 2 or unknown, else all; sufficient: those with score 2,
    else useful; all: all."""
    evidence_tokens: Annotated[int | None, Field(strict=True, ge=1), Key(needs=("retriever",), metavar="N")] = None
    """Most estimated tokens of the passages that a reader sees, with their sources and answered sub-questions, best
    verdicts first. A passage that does not fit is left out, and a later one may fit; the first is always shown."""
    evidence_ranker: Annotated[EvidenceRanker | None, Key(needs=("evidence_tokens",))] = None
    """Fills evidence_tokens with passages that have good verdicts and repeat each other little; else by verdict."""

    @model_validator(mode="after")
    def _check_has_limit(self) -> Self:
        if self.evidence_ranker is not None and self.evidence_tokens is None:
            raise ValueError(
                f"evidence_ranker={self.evidence_ranker!r} chooses within a limit of tokens: give evidence_tokens too"
            )
        return self


class Reading(Evidence):
    """Reader"""

    strategy: Annotated[AnswerStrategy, Key(needs=("retriever",))] = "stuff"
    """How the reader takes in its evidence. stuff: at once; map_reduce: notes of each passage, then the answer; refine:
    passage by passage; map_rerank: the surest of the passages' answers."""
    answer_form: Annotated[AnswerForm, Key(per_question=True, metavar="YAML")] = AnswerForm()
    """How the answer is written, but not those of sub-questions: instructions, max_tokens, stop, seed, json_format and
    json_schema, such as {instructions: In French., max_tokens: 50}."""
    insert_block: Annotated[bool, Key(needs=("retriever",), per_question=True)] = False
    """Let a model take out the chunks that do not belong to the answer before it is written, and name a key passage and
    a reason for each that stays; a call for each chunk that the reader would see."""
    insert_block_llm: Annotated[
        Address | None,
        Key(needs=("insert_block",), per_question=True, is_part=True, path_in=after("local:"), metavar="MODEL"),
    ] = None
    """Model of insert_block; else the one that judges."""
    tools: Annotated[tuple[str, ...], Key(needs=("tools",), is_part=True, older_flag="--tool", metavar="NAME")] = ()
    """Tools of the agent react, and of systems of your own: calculator, web, or a tool of LangChain as module:name."""
