"""Code versions: what is recorded, what is refused, what is told."""

from __future__ import annotations

import pytest

from judgetree.evaluation.rows.code_version import (
    code_version,
    code_versions_in,
    mixed_versions,
    package_digest,
    with_code,
)
from judgetree.modules.errors import SettingsError

NOW = dict(code_version())


def then(**changes: str) -> dict[str, object]:
    """A manifest whose newest rows were made by another version."""
    return {"code": [{**NOW, "id": "then", **changes}]}


def test_version_is_the_same_as_long_as_the_files_are() -> None:
    assert package_digest() == NOW["code_digest"]
    assert NOW.keys() >= {"id", "git_revision", "python", "formats", "langgraph", "pymilvus", "jieba", "openai"}
    manifest = with_code({}, accept_changes=False, where="here")
    assert code_versions_in(manifest) == [NOW]
    assert with_code(manifest, accept_changes=False, where="here") is manifest


@pytest.mark.parametrize("name", ["code_digest", "jieba", "formats"])
def test_what_may_change_results_is_refused_by_name_unless_accepted(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"rows in here .*{name}: 0 then, .* now\).*--accept-changes"):
        with_code(then(**{name: "0"}), accept_changes=False, where="here")
    mixed = with_code(then(**{name: "0"}), accept_changes=True, where="here")
    assert [version["id"] for version in code_versions_in(mixed)] == ["then", NOW["id"]]
    assert with_code(mixed, accept_changes=False, where="here") is mixed, "it was accepted before"


def test_what_changes_no_result_is_taken_down_only() -> None:
    grown = with_code(then(langgraph="0.1", python="3.9"), accept_changes=False, where="here")
    assert len(code_versions_in(grown)) == 2
    assert list(mixed_versions(code_versions_in(grown), {"then": 7})) == []
    (told,) = mixed_versions(code_versions_in(grown), {"then": 1200, NOW["id"]: 3})
    assert told.startswith(
        f"**The rows were made by 2 versions of the code: 1,200 by then, 3 by {NOW['id']} (python: 3.9"
    )
    assert f"langgraph: 0.1 then, {NOW['langgraph']} now" in told
