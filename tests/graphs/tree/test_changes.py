"""JSON Patches between documents."""

from __future__ import annotations

import json

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from judgetree.graphs.tree.changes import changes_between

NAMES = st.sampled_from(["a", "b", "", "~", "/", "a/b", "~1", "汉", "0", "-"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, 1.0, 1.5]), NAMES)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)


@given(DOCUMENTS, DOCUMENTS)
def test_the_changes_make_the_new_document_of_the_old_one(old: object, new: object) -> None:
    changes = changes_between(old, new)
    assert _same(jsonpatch.apply_patch(old, changes), new)
    assert (changes == []) == _same(old, new)


def _same(one: object, other: object) -> bool:
    """Equal, where an object's names have no order, and true, 1 and 1.0 are three values."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_what_grew_at_its_end_is_added_alone() -> None:
    old: dict[str, object] = {"chunks": [{"id": 1, "runs": []}]}
    new: dict[str, object] = {"chunks": [{"id": 1, "runs": [{"query": "q"}]}, {"id": 2}]}
    assert changes_between(old, new) == [
        {"op": "add", "path": "/chunks/0/runs/0", "value": {"query": "q"}},
        {"op": "add", "path": "/chunks/1", "value": {"id": 2}},
    ]


def test_null_is_a_value() -> None:
    assert changes_between({"a": 1}, {"a": None}) == [{"op": "replace", "path": "/a", "value": None}]
