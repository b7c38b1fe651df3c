"""A request that is wrong is told so in plain sentences, whichever field it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import get_type_hints

import httpx
import pytest
from fastapi import APIRouter
from fastapi.params import Param
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError

from judgetree.app.server.application import ROUTERS
from judgetree.app.server.serving.request_faults import RequestFault, models_in
from tests.app.conftest import COLLECTION

WRONG = (None, True, -1, 0, 0.5, 10**10, math.nan, "", "x" * 2_000, "\ud800", "a\x00", [], [{}], {}, {"odd": 1})
PYDANTIC_S = ("Input should", "should be", "should have", "should match", "Value error", "required", "permitted")


def parameters() -> Iterator[tuple[str, str, object]]:
    """Place, name and annotated type of each parameter and body that a door reads."""
    for route in routes_of(ROUTERS):
        if route.body_field:
            yield "body", route.path, route.body_field.field_info.annotation
        for name, hint in get_type_hints(route.endpoint, include_extras=True).items():
            if any(isinstance(each, Param) for each in getattr(hint, "__metadata__", ())):
                yield "query", name, hint


def routes_of(routers: Iterable[APIRouter]) -> Iterator[APIRoute]:
    """The routes of routers, and of those that they include."""
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute):
                yield route
            else:
                yield from routes_of([route.original_router])  # type: ignore[attr-defined]


def faults_of_wrong(hint: object, value: object, loc: tuple[object, ...]) -> list[dict[str, object]]:
    try:
        TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        return [{**fault, "loc": (*loc, *fault["loc"])} for fault in error.errors()]
    return []


def fields_below(annotation: object, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Place and name of each field of a body, and of one that there is not."""
    for model in models_in(annotation):
        yield at, "unknown"
        for name, field in model.model_fields.items():
            yield at, field.alias or name
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                yield from fields_below(field.annotation, (*at, name))


def test_no_field_of_a_request_is_refused_in_pydantic_s_words() -> None:
    seen = {}
    for where, name, hint in parameters():
        if where == "query":
            tried = [({"value": value}, hint, value, (where, name)) for value in WRONG]
        else:
            tried = []
            for at, field in fields_below(hint):
                for value in WRONG:
                    body: dict[str, object] = {field: value}
                    for part in reversed(at):
                        body = {part: body}
                    tried.append((body, hint, body, (where,)))
        for body, kind, value, loc in tried:
            if faults := faults_of_wrong(kind, value, loc):
                fault = RequestFault.of(faults, body, kind if where == "body" else None)
                seen[fault.words] = (name, value)
    assert len(seen) > 300
    assert {words: at for words, at in seen.items() if any(own in words for own in PYDANTIC_S)} == {}
    assert {words for words in seen if "{" in words.replace("{}", "").replace("{…}", "")} == set()


@pytest.mark.parametrize(
    ("change", "param", "words"),
    [
        ({"messages": None}, "messages", "messages=null is not allowed: give a list."),
        (
            {"messages": [{"role": "user", "content": 7}]},
            "messages.0.content",
            "messages.0.content=7 is not allowed: give text or a list.",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages.0.content.0",
            "messages.0.content.0: a part of the type text needs text.",
        ),
        ({"stop": [""]}, "stop.0", 'stop.0="" is not allowed: give at least 1 character.'),
        ({"temperature": 3}, "temperature", "temperature=3 is not allowed: give at most 2."),
        (
            {"judgetree": {"search_type": "odd"}},
            "judgetree.search_type",
            'judgetree.search_type="odd" is not allowed: give ',  # in the order of the first such literal
        ),
        (
            {"judgetree": {"topq": 1, "limits": {"max_llm_call": 1}}},
            "judgetree.limits.max_llm_call",
            "There is no field judgetree.limits.max_llm_call. Did you mean 'max_llm_calls'? Fields: ",
        ),
        ({"judgetree": {"topk": "sk-1234567890abcdef"}}, "judgetree.topk", 'judgetree.topk="sk-***" is not allowed'),
        ({"response_format": {}}, "response_format.type", "response_format.type is missing."),
    ],
)
def test_a_sentence_says_field_value_and_what_is_allowed(
    http: httpx.Client, change: dict[str, object], param: str, words: str
) -> None:
    asked = {"model": f"{COLLECTION}/judge", "messages": [{"role": "user", "content": "a"}]}
    answer = http.post("/v1/chat/completions", json=asked | change)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (422, param)
    assert error["message"].startswith(words)


def test_a_body_that_may_be_left_out_is_worded_alike(http: httpx.Client) -> None:
    answer = http.post("/v1/conversations/any/undo", json={"turn": "a"})
    words = "There is no field turn. Did you mean 'turn_id'? Fields: turn_id."
    assert (answer.status_code, answer.json()["error"]["message"]) == (422, words)


def test_parameters_of_paths_and_queries_are_worded_alike(http: httpx.Client) -> None:
    answer = http.get(f"/v1/collections/{COLLECTION}?limit=many&offset=-1")
    assert answer.json()["error"]["message"] == (
        'limit="many" is not allowed: give a whole number. offset="-1" is not allowed: give at least 0.'
    )
    answer = http.post(f"/v1/collections/{COLLECTION}/documents")
    assert answer.json()["error"]["message"] == "files is missing."


@pytest.mark.parametrize("given", ["", "x", "x" * 2_000])
@pytest.mark.parametrize("field", ["files", "odd"])
@pytest.mark.parametrize("name", [COLLECTION, "x" * 300])
def test_a_form_that_is_wrong_is_told_so(http: httpx.Client, given: str, field: str, name: str) -> None:
    """A text where files are wanted, and none at all; alone and beside a name that is too long."""
    answer = http.post(f"/v1/collections/{name}/documents", files={field: (None, given)})
    words = answer.json()["error"]["message"]
    assert answer.status_code == 422
    assert ("files is missing." if field == "odd" else "is not allowed: give a file, as a form sends it.") in words
    assert not [each for each in PYDANTIC_S if each in words]
