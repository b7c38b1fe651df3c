"""A calculator for agents."""

from __future__ import annotations

import ast
import math

from langchain_core.tools import BaseTool, StructuredTool
from simpleeval import DEFAULT_OPERATORS, SimpleEval

_FUNCTIONS = {
    **{each.__name__: each for each in (abs, round, min, max)},
    **{each.__name__: each for each in (math.sqrt, math.exp, math.log, math.log10, math.log2, math.floor, math.ceil)},
    **{each.__name__: each for each in (math.sin, math.cos, math.tan, math.radians, math.degrees)},
}
_CONSTANTS = {"pi": math.pi, "e": math.e}
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_MOST_BITS = 4096
"""Most bits of a power; Python would compute larger ones for hours."""
_DIGITS = 12
"""Significant digits of a result that is no whole number."""


def calculate(expression: str) -> str:
    """Compute an arithmetic expression.

    >>> calculate("(212 - 32) * 5 / 9"), calculate("2^10 × 3")
    ('100', '3072')

    Raises:
        ValueError: It is no arithmetic expression, or its numbers are too large.
    """
    try:
        value = _calculator().eval(expression.translate(_SIGNS))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("its value is no number")
        return str(value) if isinstance(value, int) else f"{value:.{_DIGITS}g}"
    except Exception as error:  # simpleeval's errors have no common class besides it
        raise ValueError(
            f"{expression!r:.100} cannot be computed: {error}. Write numbers without separators of thousands, "
            f"+ - * / // % ^, brackets, {', '.join(_FUNCTIONS)}, {', '.join(_CONSTANTS)}."
        ) from error


def calculator() -> BaseTool:
    """Return the calculator as a tool of LangChain."""
    return StructuredTool.from_function(
        calculate,
        name="calculator",
        description="computes an arithmetic expression such as (212 - 32) * 5 / 9",
    )


def _calculator() -> SimpleEval:
    return SimpleEval(operators={**DEFAULT_OPERATORS, ast.Pow: _power}, functions=_FUNCTIONS, names=_CONSTANTS)


def _power(base: float, exponent: float) -> float:
    if abs(exponent) * math.log2(max(abs(base), 2)) > _MOST_BITS:
        raise ValueError("the power is too large")
    result: float = base**exponent
    return result
