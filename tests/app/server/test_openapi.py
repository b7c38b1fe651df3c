"""The description of the API, and that the server keeps to it."""

from __future__ import annotations

import random

import httpx
import pytest

from tests.app.server.fuzzing import Fuzzing

CASES = 500


def test_the_description_is_openapi_3_1_with_words_and_examples(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    wordless = [
        f"{method} {path}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if not operation.get("description")
    ]
    assert wordless == []
    schemas = document["components"]["schemas"]
    assert "example" in schemas["ChatRequest"]
    said = (("QuestionRequest", "regenerate"), ("TurnOptions", "sources"), ("KnowledgeQuestion", "model_id"))
    assert [field for model, field in said if not schemas[model]["properties"][field].get("description")] == []


def test_streams_are_described_by_their_events(http: httpx.Client) -> None:
    """As OpenAPI 3.2 and schemathesis read a stream: its schema is that of each event."""
    paths = http.get("/openapi.json").json()["paths"]
    streams = {
        f"{method} {path}": answer["content"]["text/event-stream"]["schema"]
        for path, operations in paths.items()
        for method, operation in operations.items()
        for answer in operation["responses"].values()
        if "text/event-stream" in answer.get("content", {})
    }
    assert len(streams) >= 5
    assert [name for name, schema in streams.items() if schema.get("required") != ["data"]] == []


@pytest.mark.slow
def test_made_up_requests_find_no_server_error_and_answers_keep_to_the_description(address: str) -> None:
    fuzzing = Fuzzing(address=address)
    sent = fuzzing.fuzz(cases=CASES, seeded=random.randrange(2**32))
    assert fuzzing.failed == []
    assert sent >= CASES / 2  # hypothesis repeats no case where a schema has few
