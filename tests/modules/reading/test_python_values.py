"""Values as Python and numpy print them: read back, or refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.reading.python_values import python_value


@given(st.recursive(st.text() | st.integers() | st.booleans() | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_what_python_prints_is_read_back(value: object) -> None:
    assert python_value(repr([value])) == [value]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=20))
def test_what_numpy_prints_is_read_back(texts: list[str]) -> None:
    assert python_value(str(np.array(texts, dtype=object))) == texts
    assert python_value(repr({"text": np.array(texts, dtype=object)})) == {"text": texts}


@pytest.mark.parametrize("text", ["['a'", "['a']]", "[sic]", "[007]", "['a' ... 'b']", "{'a': 1, 'a': 2}", "f()", ""])
def test_a_text_that_prints_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"it |twice|is no number"):
        python_value(text)
