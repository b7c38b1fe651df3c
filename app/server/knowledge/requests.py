"""Body of a question to the knowledge chat."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ....modules.storage.texts import MAX_ID_BYTES, is_storable


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("a text has no NUL and no half of a surrogate pair")
    return text


Id = Annotated[str, Field(max_length=MAX_ID_BYTES // 4), AfterValidator(_storable)]


class KnowledgeQuestion(BaseModel):
    """Body of ``POST /knowledge_chat_conversation``; unknown fields are ignored."""

    model_config = ConfigDict(
        use_attribute_docstrings=True,
        protected_namespaces=(),
        json_schema_extra={
            "example": {
                "question": "Which gasket seals a Rating F40 flange?",
                "session_id": "monday",
                "thinking": False,
                "model_id": "standards/judge",
                "rerank_top_n": 3,
                "use_insert_block": True,
            }
        },
    )

    question: Annotated[str, Field(min_length=1, max_length=1_000_000, pattern=r"\S"), AfterValidator(_storable)]
    session_id: Id = ""
    """Name of the conversation; empty starts a new one, whose name the event ``SESSION`` tells."""
    thinking: bool | None = None
    """Whether the answering model thinks first; null leaves it to its endpoint."""
    model_id: Id | None = None
    """A model of ``GET /v1/models``, the name of an answering model (``ServerOptions.llms``), or both, as in
    ``standards/judge@large``; null suffices where one collection is served."""
    rerank_top_n: int | None = Field(default=None, ge=1, le=100)
    """Chunks that each query retrieves, after reranking."""
    use_insert_block: bool = False
    """Whether a model takes out chunks that do not belong to the answer, and names key passages and reasons."""
    insert_block_llm_id: Id | None = None
    """Name of that filter's model (``ServerOptions.llms``); null takes the one that judges."""
    parent_turn_id: Id | None = None
    """Turn that the question follows; null for the newest, empty for none."""
