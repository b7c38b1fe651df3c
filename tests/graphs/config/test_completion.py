"""Keys in the signatures of what takes them, where notebooks look for completions."""

from __future__ import annotations

import inspect

import pytest

import judgetree
from judgetree import evaluation


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("run", {"dataset", "systems", "topk", "match_budget", "primary", "judge"}),
        ("ask", {"judge", "topk", "max_rec_depth", "collection"}),
        ("aask", {"judge", "topk"}),
        ("RagSession", {"judge", "topk", "collection", "settings"}),
    ],
)
def test_a_notebook_completes_the_keys(name: str, keys: set[str]) -> None:
    parameters = inspect.signature(getattr(evaluation if name == "run" else judgetree, name)).parameters
    assert keys <= parameters.keys()
    assert list(parameters.values())[-1].kind is inspect.Parameter.VAR_KEYWORD, "later versions may take more"
