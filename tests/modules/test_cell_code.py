"""Parts that are defined in notebook cells: what changes their source, and what does not."""

import itertools
import linecache
from typing import Any

import pytest

from judgetree.modules.parts import part_of

_CELL = """
import re
from dataclasses import dataclass
LIMIT = 3
SHORTER = re.compile("a")
seen, calls = [], 0

def norm(text):
    return text.lower()

def decorated(function):
    return function

class Base:
    weight = 0.5

@dataclass
class Judge(Base):
    shortest: int = 3
    name = "mine"

    def judge(self, text):
        global calls
        calls += 1
        Judge.asked = calls
        seen.append(text)
        return any(norm(each) and SHORTER.search(each) and len(each) > LIMIT for each in text.answer)

    @property
    def half(self):
        return 1

    asked = 0
"""
_places = itertools.count()


def _cell(code: str) -> dict[str, Any]:
    place = f"<cell {next(_places)}>"
    linecache.cache[place] = (len(code), None, code.splitlines(keepends=True), place)
    namespace: dict[str, Any] = {"__name__": "a_notebook"}
    exec(compile(code, place, "exec"), namespace)
    return namespace


def _source(code: str) -> str:
    return part_of("judge", _cell(code)["Judge"]).source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ('compile("a")', 'compile("b")'),
        ("text.lower()", "text.upper()"),
        ("weight = 0.5", "weight = 0.6"),
        ("shortest: int = 3", "shortest: int = 4"),
        ('name = "mine"', 'name = "yours"'),
        ("return 1", "return 2"),
        ("return any", "return all"),
    ],
)
def test_what_a_class_of_a_cell_uses_changes_its_source(before: str, after: str) -> None:
    assert _source(_CELL) == _source(_CELL)
    assert before in _CELL
    assert _source(_CELL.replace(before, after)) != _source(_CELL)


def test_what_a_class_of_a_cell_sets_or_does_not_use_changes_nothing() -> None:
    namespace = _cell(_CELL)
    source = part_of("judge", namespace["Judge"]).source
    namespace |= {"seen": ["other"], "calls": 7, "answer": "a word that the judge has as an attribute's name"}
    namespace["Judge"].asked = 8
    assert part_of("judge", namespace["Judge"]).source == source


def test_a_constant_set_in_another_cell_changes_the_source_of_the_same_function() -> None:
    namespace = _cell("LIMIT = 3\ndef metric(sample):\n    return float(len(sample) > LIMIT)\n")
    source = part_of("metric", namespace["metric"]).source
    namespace["LIMIT"] = 4
    assert part_of("metric", namespace["metric"]).source != source


def test_a_system_of_a_cell_has_the_code_of_its_nodes() -> None:
    code = "def node(state):\n    return state[:1000]\n\ndef build(**options):\n    return [node]\n"
    sources = [part_of("system", _cell(each)["build"]).source for each in (code, code.replace("1000", "10"))]
    assert sources[0] != sources[1]
