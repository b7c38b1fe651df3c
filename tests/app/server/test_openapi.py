"""The description of the API, and that the server keeps to it."""

from __future__ import annotations

import httpx

from tests.app.server.fuzzing import fuzz

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
    assert "example" in document["components"]["schemas"]["ChatRequest"]


def test_made_up_requests_find_no_server_error_and_answers_keep_to_the_description(address: str) -> None:
    assert fuzz(address, cases=CASES) >= CASES / 2  # hypothesis repeats no case where a schema has few
