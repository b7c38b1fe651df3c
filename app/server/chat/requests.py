"""Requests for a chat completion; ``parameters`` says what becomes of fields that are not read here."""

from __future__ import annotations

import json
import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from ....modules.config.answer_form import MAX_INSTRUCTIONS, USUAL_FORM, AnswerForm
from ....modules.errors import faults_of
from ....modules.storage.texts import is_storable
from ..serving.errors import ApiError
from ..serving.options import SourcesForm
from ..serving.request_keys import QuestionKeys

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]


_INSTRUCTING = ("system", "developer")
_KINDS = {"image_url": "image", "input_audio": "audio"}
"""Words for kinds of parts that do not name themselves."""
_NO_WORD = re.compile(r"[^A-Za-z0-9_ -]")
_StopText = Annotated[str, Field(min_length=1, max_length=200)]


class MessagePart(BaseModel):
    """A part of a message: a text, or a picture, a file, a recording or a refusal, none of which is read."""

    type: str
    text: str | None = None
    """The text of a part of the type ``text``."""

    @model_validator(mode="after")
    def _has_its_text(self) -> Self:
        if self.type == "text" and self.text is None:
            raise ValueError("a part of the type text needs text")
        return self

    @property
    def kind(self) -> str:
        """What a part is that is no text, in a word; ``""`` for a text."""
        return "" if self.type == "text" else _KINDS.get(self.type, _NO_WORD.sub("", self.type)[:40] or "part")


class Message(BaseModel):
    """A message of the conversation as the client holds it."""

    role: Role
    content: str | list[MessagePart] | None = None

    @property
    def text(self) -> str:
        """All its text, with a mark in place of each part that is none."""
        if isinstance(self.content, list):
            return "\n".join(f"[{part.kind} left out]" if part.kind else part.text or "" for part in self.content)
        return self.content or ""

    @property
    def unread(self) -> list[str]:
        """Kinds of its parts that are no text, each once."""
        parts = self.content if isinstance(self.content, list) else []
        return list(dict.fromkeys(part.kind for part in parts if part.kind))


class StreamOptions(BaseModel):
    """What a stream contains."""

    include_usage: bool = False


class JsonForm(BaseModel):
    """A form of JSON."""

    name: str = Field(default="", max_length=200)
    schema_: dict[str, JsonValue] = Field(alias="schema")
    """JSON Schema. The model's endpoint keeps to it where it can; the server checks that required fields are there."""

    @field_validator("schema_")
    @classmethod
    def _can_be_sent(cls, schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if not is_storable(json.dumps(schema, ensure_ascii=False, allow_nan=False)):  # raises ValueError
            raise ValueError("a text has no half of a surrogate pair")
        return schema


class ResponseFormat(BaseModel):
    """Form of the answer."""

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
    """Body of ``POST /v1/chat/completions``.

    ``n`` above 1, a ``tool_choice`` that demands a call, ``logprobs``, ``top_p`` below 1, penalties and what else
    would change the answer are refused by name. The header ``X-Judgetree-Ignored`` of an answer names other
    parameters that had no effect.
    """

    model_config = ConfigDict(
        extra="allow",
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
    """The conversation. Texts of the roles ``system`` and ``developer`` are instructions to the model that writes the
    answer: its language, length, tone and layout. They never reach the judge, and the rules of the reader's prompt
    stand above them. The last message is the question, which is text; in others, images, files and audio are left
    out."""
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Temperature of the model that answers; null as the server has it."""
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    """Seed of the call that writes the answer, at endpoints that know one."""
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """Most tokens of the answer; ``finish_reason`` is ``length`` where it ends there."""
    max_completion_tokens: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """The newer name of ``max_tokens``, which counts where both are given."""
    stop: _StopText | Annotated[list[_StopText], Field(max_length=16)] | None = None
    """Texts at which the answer ends; it holds none of them."""
    response_format: ResponseFormat | None = None
    """Form of the answer: a JSON object, of any form or of a schema. Where the question cannot be answered, ``refusal``
    says so."""
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

    def check_is_text(self) -> None:
        """Check that the question is text.

        Raises:
            ApiError: HTTP 400: it has an image, a file, or other parts.
        """
        if unread := self.messages[-1].unread:
            left_out = " and ".join(f"the {kind}" for kind in unread)
            raise ApiError(
                400,
                f"This server reads text: leave out {left_out}, and ask in words.",
                param="messages",
                code="no_text",
            )

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop texts."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def most_tokens(self) -> int | None:
        """Most tokens of the answer."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    def answer_keys(self) -> dict[str, object]:
        """Return the keys of the question that say how the model answers; a search tells them apart.

        Raises:
            ApiError: HTTP 400: the instructions are too long or no text, or the schema cannot be kept.
        """
        try:
            form = AnswerForm(
                instructions=self._instructions(),
                max_tokens=self.most_tokens,
                stop=self.stops,
                seed=self.seed,
                json_format=self.json_format,
                json_schema=self.json_schema,
            )
        except ValidationError as error:
            fault = error.errors()[0]
            is_text = fault["loc"][:1] == ("instructions",)
            words = (
                "The system messages hold half a surrogate pair: send text." if is_text else f"{faults_of(error)[0]}."
            )
            raise ApiError(400, words, param="messages" if is_text else "response_format") from error
        given: dict[str, object] = {"temperature": self.temperature, "answer_form": form}
        return {name: value for name, value in given.items() if value not in (None, USUAL_FORM)}

    @property
    def json_format(self) -> Literal["json_object", "json_schema"] | None:
        """The kind of JSON that the answer is; None for text."""
        form = self.response_format
        return None if form is None or form.type == "text" else form.type

    @property
    def json_schema(self) -> dict[str, JsonValue] | None:
        """The schema of the answer; None without one."""
        form = self.response_format.json_schema if self.response_format else None
        return form.schema_ if form else None

    def _instructions(self) -> str:
        texts = [each.text.strip() for each in self.messages if each.role in _INSTRUCTING]
        found = "\n\n".join(filter(None, texts))
        if len(found) > MAX_INSTRUCTIONS:
            raise ApiError(
                400,
                f"The system messages are longer than {MAX_INSTRUCTIONS} characters together: shorten them.",
                param="messages",
            )
        return found

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with a chunk of usage."""
        return self.stream_options is not None and self.stream_options.include_usage
