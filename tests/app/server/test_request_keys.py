"""Requests take the keys of a question that say so, at every door, and no file of the server repeats one."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError

from judgetree import RagConfig
from judgetree.app.server.chat.requests import TurnOptions
from judgetree.app.server.conversations.questions import QuestionRequest
from judgetree.app.server.serving.errors import ApiError
from judgetree.app.server.serving.request_keys import QuestionKeys, QuestionLimits, with_keys
from judgetree.graphs.config.limits import Limits
from judgetree.modules.addresses import Address
from judgetree.modules.errors import SettingsError
from tests.app.conftest import Cli

REPO = Path(__file__).parents[3]
IN_REQUESTS = RagConfig.keys_with(in_requests=True)
BESIDE = {"model": "notes/judge", "question": "Which oil?"}


@pytest.mark.parametrize("name", IN_REQUESTS)
def test_a_key_of_requests_is_one_of_questions_and_names_no_address(name: str) -> None:
    key, known = RagConfig.key(name), RagConfig.model_fields[name]
    assert key.per_question
    assert Address not in (known.annotation, *get_args(known.annotation))


def test_every_door_takes_the_same_keys() -> None:
    for body in (QuestionKeys, QuestionRequest, TurnOptions):
        names = {*body.model_fields, *QuestionLimits.model_fields}
        assert names & {*RagConfig.model_fields} == {*IN_REQUESTS}
    assert {*QuestionLimits.model_fields} == {*IN_REQUESTS} & {*Limits.model_fields}


@pytest.mark.parametrize("name", IN_REQUESTS)
@pytest.mark.parametrize("wrong", [-1, True, "3", 10**10, [], 0.5])
def test_a_request_is_as_strict_as_the_key(name: str, wrong: object) -> None:
    keys = {"limits": {name: wrong}} if name in QuestionLimits.model_fields else {name: wrong}
    try:
        RagConfig(**{name: wrong})
    except SettingsError:
        with pytest.raises((ValidationError, ApiError)):
            QuestionRequest.model_validate({**BESIDE, **keys}).keys(Limits())


def test_a_new_key_has_its_bounds() -> None:
    @with_keys(["score_threshold"])
    class Body(BaseModel):
        """A body."""

    assert Body.model_validate({"score_threshold": 0.5}).model_dump() == {"score_threshold": 0.5}
    assert Body.model_fields["score_threshold"].description == "Least score of a retrieved chunk."
    with pytest.raises(ValidationError, match="finite"):
        Body.model_validate({"score_threshold": float("inf")})


def test_the_help_of_serve_says_which_keys_are_defaults(cli: Cli) -> None:
    said = " ".join(cli("serve", "--help").out.split())
    for name in {*IN_REQUESTS} - {*QuestionLimits.model_fields}:
        assert f"--{name.replace('_', '-')}" in said.partition("Other keys are defaults")[2].partition("Options")[0]
    most = QuestionKeys.model_json_schema()["properties"]["topk"]["anyOf"][0]["maximum"]
    assert f"--topk, up to {most}," in said


def test_no_body_of_the_server_repeats_a_key() -> None:
    """A field that is written out would have bounds of its own, and be forgotten with the next key."""
    repeated = [
        f"{path.relative_to(REPO)}: {each.target.id}"
        for path in sorted((REPO / "app" / "server").rglob("*.py"))
        for kind in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(kind, ast.ClassDef) and any("BaseModel" in ast.unparse(base) for base in kind.bases)
        for each in kind.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None
        if each.target.id in RagConfig.model_fields
    ]
    assert repeated == [
        "app/server/chat/requests.py: temperature",
        "app/server/chat/requests.py: stop",
        "app/server/knowledge/requests.py: thinking",
    ], "whose names and bounds are those of other programs"
