"""Searches for garbage are rarer inside, and as before afterwards; each case in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import gc, weakref
from judgetree.modules.background.garbage import rare_collections

class Ring:
    def __init__(self):
        self.itself = self

usual = gc.get_threshold()
"""
END = """
assert (gc.get_threshold(), gc.get_freeze_count()) == (usual, 0)
"""
CASES = {
    "what exists is left out, and what is made inside is found": """
before = weakref.ref(Ring())
with rare_collections():
    assert gc.get_threshold()[0] == 5_000
    inside = weakref.ref(Ring())
    gc.collect()
    assert (before() is None, inside() is None) == (False, True)
gc.collect()
assert before() is None
""",
    "the last of several restores what was": """
first, second = rare_collections(), rare_collections()
first.__enter__()
second.__enter__()
first.__exit__(None, None, None)
assert gc.get_threshold()[0] == 5_000
second.__exit__(None, None, None)
""",
    "settings of the process are kept": """
gc.set_threshold(50_000, 20, 20)
gc.disable()
gc.freeze()
with rare_collections():
    assert (gc.get_threshold(), gc.isenabled()) == ((50_000, 20, 20), False)
assert gc.get_freeze_count() > 0
gc.unfreeze()
gc.set_threshold(*usual)
""",
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_garbage_is_searched_for_rarely_inside_alone(case: str) -> None:
    made = subprocess.run([sys.executable, "-c", BEGIN + case + END], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
