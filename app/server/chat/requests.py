"""Requests for a chat completion; fields that judgetree has no use for are ignored, such as ``temperature``."""

from __future__ import annotations

import json
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from ....modules.storage.texts import is_storable
from ..serving.options import SourcesForm
from ..serving.request_keys import QuestionKeys

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]


class TextPart(BaseModel):
    """A part of a message; only texts are read."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """A message of the conversation as the client holds it."""

    role: Role
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """All its text."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    """What a stream contains."""

    include_usage: bool = False


class JsonForm(BaseModel):
    """A form of JSON."""

    name: str = Field(default="", max_length=200)
    schema_: dict[str, JsonValue] = Field(alias="schema")
    """JSON Schema, which the model's endpoint checks."""

    @field_validator("schema_")
    @classmethod
    def _can_be_sent(cls, schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if not is_storable(json.dumps(schema, ensure_ascii=False, allow_nan=False)):  # raises ValueError
            raise ValueError("a text has no half of a surrogate pair")
        return schema


class ResponseFormat(BaseModel):
    """Form of the answer; JSON of the model ``fast`` alone."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonForm | None = None
    """Form of the type ``json_schema``."""

    @model_validator(mode="after")
    def _has_its_schema(self) -> Self:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("the type json_schema, and no other, needs json_schema")
        return self


class TurnOptions(QuestionKeys):
    """judgetree's own options of one question; what is missing is as the server has it."""

    sources: SourcesForm | None = None
    """Where sources are named: in ``annotations``, in a list behind the answer (``markdown``), which all clients show,
    in both or nowhere; null for the server's ``--sources``."""


class Metadata(BaseModel):
    """Metadata of a request, of which only the chat's id is read."""

    chat_id: str | None = None


class ChatRequest(BaseModel):
    """Body of ``POST /v1/chat/completions``."""

    model_config = ConfigDict(
        use_attribute_docstrings=True,
        json_schema_extra={
            "example": {
                "model": "standards/judge",
                "messages": [{"role": "user", "content": "Which gasket seals a Rating F40 flange?"}],
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        },
    )

    model: str = Field(max_length=500)
    messages: list[Message] = Field(min_length=1, max_length=10_000)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    """Log probabilities are not given."""
    top_logprobs: Literal[0] | None = None
    response_format: ResponseFormat | None = None
    metadata: Metadata | None = None
    chat_id: str | None = None
    thread_id: str | None = None
    """Id of a conversation whose history the server holds: one message suffices, and follows its newest turn."""
    judgetree: TurnOptions = Field(default_factory=TurnOptions)

    @field_validator("messages")
    @classmethod
    def _ends_with_a_question(cls, messages: list[Message]) -> list[Message]:
        if messages[-1].role != "user" or not messages[-1].text.strip():
            raise ValueError("the last message must be a user's, with text")
        return messages

    @property
    def question(self) -> str:
        """Text of the last message."""
        return self.messages[-1].text

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with a chunk of usage."""
        return self.stream_options is not None and self.stream_options.include_usage
