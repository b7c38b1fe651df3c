"""Small files of questions that unfold into much are refused within the memory and time of documents."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.evaluation.datasets.own_questions import load_own_questions
from judgetree.evaluation.question_files.kept_questions import keep_questions
from judgetree.modules.errors import LoadingError, SettingsError
from tests.cpu_time import cpu_time_below

from .question_files import CONTENTS, GOOD
from .watch import peak_memory_mb

MOST_CPU_S = 20.0
MOST_OWN_MEMORY_MB = 500.0
MOST_CHILD_MB = 1_200.0


SLOW = {
    *("cells.xlsx", "last-rows.xlsx", "many-strings.xlsx", "merged.xlsx", "merged-columns.xlsx", "nested-xml.xlsx"),
    *("objects.json", "rows.csv", "shared-strings.xlsx", "sparse.xlsx", "unpacks.xlsx", "wide-rows.xlsx"),
}
"""Those that take a second or more, most of them since they are read up to their limit."""


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in CONTENTS]
)
def test_a_file_that_unfolds_is_refused_by_name(name: str, tmp_path: Path) -> None:
    (file := tmp_path / name).write_bytes(CONTENTS[name]())
    before_mb, children_s = peak_memory_mb(), _children_s()
    with cpu_time_below(MOST_CPU_S), pytest.raises(LoadingError, match=name):
        load_own_questions(file)
    assert _children_s() - children_s < 70.0  # the limit of a document is 60 s
    assert peak_memory_mb() - before_mb < MOST_OWN_MEMORY_MB
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10 < MOST_CHILD_MB + before_mb


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(content, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, content in GOOD.items()
    ],
)
def test_a_file_that_only_looks_large_is_read(
    content: Callable[[], bytes], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (file := tmp_path / request.node.callspec.id).write_bytes(content())
    assert [each.question for each in load_own_questions(file).questions] == ["Who wrote it?"]


def test_a_list_that_nests_without_end_is_no_question(tmp_path: Path) -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(SettingsError, match="cannot be written as JSON"):
        keep_questions([{"question": "Who?", "answer": nested}], tmp_path)
