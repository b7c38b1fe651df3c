"""Errors as HTTP answers, in the shape of OpenAI's API: ``{"error": {message, type, param, code}}``."""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar
from http import HTTPStatus
from typing import Self

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from ....modules.errors import (
    BudgetSpent,
    ConversationBusy,
    DependencyError,
    JudgetreeError,
    MilvusFailure,
    ModelCallError,
    NoRunningQuestion,
    RequestIdTaken,
    SessionError,
    StoreFailure,
    UnknownConversation,
    UnknownThread,
    UserError,
    WritingError,
)
from ....modules.settings import without_secrets
from .request_faults import RequestFault
from .wrong_paths import hint_for, words_for_method

logger = logging.getLogger(__name__)


class ErrorBody(BaseModel):
    """What went wrong."""

    message: str
    type: str
    """``invalid_request_error``, ``authentication_error``, ``rate_limit_error`` or ``api_error``."""
    param: str | None = None
    """Field of the request that is wrong."""
    code: str | None = None


class ErrorAnswer(BaseModel):
    """Answer to a request that failed."""

    error: ErrorBody


class ApiError(JudgetreeError):
    """A request that is answered with an HTTP error."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = ErrorBody(message=message, type=kind, param=param, code=code)

    @classmethod
    def not_found(cls, what: str, name: str) -> Self:
        """Make the error of a thing that does not exist, or that the caller may not see."""
        return cls(404, f"There is no {what} {name!r:.200}.", code=f"{what}_not_found")


class NoAnswerInTime(MilvusFailure):
    """Milvus did not answer within a door's limit."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(
            f"Milvus has not answered for {limit_s:g} s. Check that the server runs and can be reached, then try again."
        )


hides_causes: ContextVar[bool] = ContextVar("hides_causes", default=False)
"""Whether the sender of the request holds a key, so that no error shows addresses, paths and replies of models."""
_ASK_LATER = "Ask again later; the log of the server says why."
_MODEL_FAILED = f"A model of the server did not answer as it should. {_ASK_LATER}"
_QUESTION_FAILED = f"The question failed, by a model of the server or a limit. {_ASK_LATER}"
_SERVER_FAILED = f"A part of the server does not work. {_ASK_LATER}"
_ADDRESS = re.compile(r"(?:(?<![\w+.-])[\w+.-]{1,40}+://|(?<![\w.:/])/[^\s'\"/<>]{1,200}+/)[^\s'\"<>]*+")
"""Addresses, and absolute paths of files."""
NO_RETRY = {"X-Should-Retry": "false"}
"""Header by which OpenAI's clients do not send a request again."""
_NO_OBJECT = "The body is no JSON object. Send one, with the header Content-Type: application/json."
_NO_OBJECT_FAULTS = (("json_invalid", 2), ("missing", 1), ("model_attributes_type", 1), ("dict_type", 1))
"""Kinds of faults of a whole body, each with the length of its place: the body, and for JSON where it breaks off."""
_STATUS: tuple[tuple[type[JudgetreeError], int, str], ...] = (
    (ConversationBusy, 409, "invalid_request_error"),
    (NoRunningQuestion, 409, "invalid_request_error"),
    (RequestIdTaken, 422, "invalid_request_error"),
    (UnknownConversation, 404, "invalid_request_error"),
    (UnknownThread, 404, "invalid_request_error"),
    (SessionError, 503, "api_error"),
    (DependencyError, 501, "api_error"),
    (BudgetSpent, 429, "insufficient_quota"),
    (ModelCallError, 502, "api_error"),
    (StoreFailure, 503, "api_error"),
    (MilvusFailure, 503, "api_error"),
    (WritingError, 503, "api_error"),
    (UserError, 400, "invalid_request_error"),
)
"""The first class that fits; ``ModelSetupError`` is a fault of the server's settings and so a 502."""


def as_api_error(error: Exception) -> ApiError:
    """Return the HTTP error for an exception; one that is no ``JudgetreeError`` shows nothing of itself."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, JudgetreeError):
        status, kind = next(((s, k) for cls, s, k in _STATUS if isinstance(error, cls)), (500, "api_error"))
        headers = NO_RETRY if status == 502 else None
        return ApiError(status, _shown(error, status), kind=kind, headers=headers)
    logger.error("request failed", exc_info=error)
    return ApiError(500, "The server failed. Its log says why.", kind="api_error")


def failure_words(message: str) -> str:
    """Return why a question failed, as its sender may read it."""
    if not hides_causes.get(False):
        return without_secrets(message)
    if message:
        logger.warning("a question failed: %s", without_secrets(message))
    return message and _QUESTION_FAILED


def _shown(error: JudgetreeError, status: int) -> str:
    words = without_secrets(str(error))
    if not hides_causes.get(False):
        return words
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return _ADDRESS.sub(lambda found: f"…{_end_of(found[0])}", words)
    logger.warning("request failed: %s", words)
    return _MODEL_FAILED if isinstance(error, ModelCallError) else _SERVER_FAILED


def _end_of(address: str) -> str:
    """Return the punctuation at the end of an address, which belongs to the sentence around it."""
    return address[len(address.rstrip(".,:;)")) :]


def answer_of(error: ApiError) -> JSONResponse:
    """Return the HTTP answer to a request that failed."""
    document = ErrorAnswer(error=error.body).model_dump()
    return JSONResponse(document, status_code=error.status, headers=error.headers)


def add_error_handlers(app: FastAPI) -> None:
    """Answer all errors of an application in this shape."""

    async def failed(_request: Request, error: Exception) -> JSONResponse:
        return answer_of(as_api_error(error))

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        faults = error.errors()
        if (faults[0]["type"], len(faults[0]["loc"])) in _NO_OBJECT_FAULTS:
            return answer_of(ApiError(422, _NO_OBJECT, code="invalid_request"))
        body_field = getattr(request.scope.get("route"), "body_field", None)
        annotation = body_field.field_info.annotation if body_field else None
        fault = RequestFault.of(faults, error.body, annotation)
        return answer_of(ApiError(422, fault.words, param=fault.place or None, code="invalid_request"))

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        match error.status_code:
            case HTTPStatus.NOT_FOUND:
                return answer_of(ApiError(404, hint_for(request.scope), code="unknown_path"))
            case HTTPStatus.METHOD_NOT_ALLOWED:
                words = words_for_method(request.scope, headers.get("Allow", ""))
            case _:
                words = str(error.detail or HTTPStatus(error.status_code).phrase)
        return answer_of(ApiError(error.status_code, words, headers=headers))

    app.add_exception_handler(JudgetreeError, failed)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, failed)
